"""Runners are asked once about an agent's tools, and not at each start of a session."""

import asyncio

import pytest

from cueline.errors import ToolImportError
from cueline.runtime.place import CheckedTools
from tests.session_example import AGENT

OTHER = AGENT.model_copy(update={"tools": AGENT.tools[:1]})


class Runners:
    """Answer for all runners, and count how often they are asked."""

    def __init__(self):
        self.asked = []
        self.problem = None
        self.checked = CheckedTools()
        self.answer = asyncio.Event()
        self.answer.set()

    async def check(self, *agents, runners=("runner-1",)):
        await self.checked.check(agents, runners, self._ask)

    async def _ask(self, agents):
        self.asked.append(list(agents))
        await self.answer.wait()
        if self.problem is not None:
            raise self.problem


@pytest.fixture
def runners():
    return Runners()


async def test_two_hundred_starts_at_once_ask_once(runners):
    runners.answer.clear()
    starts = [asyncio.create_task(runners.check(AGENT)) for _ in range(200)]
    asyncio.get_running_loop().call_soon(runners.answer.set)

    await asyncio.gather(*starts)

    assert [[AGENT]] == runners.asked


async def test_an_agent_with_other_tools_is_asked_about(runners):
    await runners.check(AGENT)
    await runners.check(AGENT, OTHER)

    assert [[AGENT], [OTHER]] == runners.asked


async def test_a_runner_that_joins_is_asked_and_one_that_left_is_not_missed(runners):
    await runners.check(AGENT, runners=("runner-1", "runner-2"))
    await runners.check(AGENT, runners=("runner-2",))
    await runners.check(AGENT, runners=("runner-2", "runner-3"))

    assert 2 == len(runners.asked)


async def test_a_refusal_is_asked_about_again(runners):
    runners.problem = ToolImportError("agent", "no such module")
    for _ in range(2):
        with pytest.raises(ToolImportError):
            await runners.check(AGENT)
    runners.problem = None
    await runners.check(AGENT)

    assert 3 == len(runners.asked)


async def test_an_agent_without_tools_is_not_asked_about(runners):
    await runners.check(AGENT.model_copy(update={"tools": ()}))

    assert [] == runners.asked
