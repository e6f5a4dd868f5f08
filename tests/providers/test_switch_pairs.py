"""A session with tools in flight goes on with the model of any other vendor, and comes back.

The servers check what a request looks like, not which result belongs to which call: that is
checked by the vendors' documented rules, on the requests that arrived.
"""

import asyncio
import json
from contextlib import ExitStack, aclosing
from itertools import permutations

import pytest

import cueline
from cueline.events.session import (
    AgentChanged,
    ModelFailed,
    ModelReplied,
    PromptPrefixChanged,
    ToolReturned,
)
from cueline.testing.model_example import PARIS, ROME
from cueline.testing.wait import await_until
from tests.providers.aimock_server import AimockServer
from tests.providers.servers import LlmockServer
from tests.providers.test_any_transcript import FORMS

FLOW = [ModelReplied, ToolReturned, AgentChanged, ToolReturned, ModelReplied]
FLOW += [AgentChanged, ModelReplied]
HELD = []
"""What lets the call for Paris end."""


@cueline.tool(read_only=True)
async def get_weather(city: str) -> str:
    """Tell the weather, in Paris when it may."""
    if city == "Paris":
        HELD.append(asyncio.Event())
        await HELD[-1].wait()
    return f"It rains in {city}."


@pytest.fixture
def server(request, llmock, monkeypatch):
    """Return what gives the server that has the protocol of a form."""
    monkeypatch.setenv("GEMINI_API_KEY", "k")
    with ExitStack() as running:

        def server_of(form):
            name = FORMS[form][0]
            if name == "ollama":
                return running.enter_context(AimockServer(request.getfixturevalue("aimock")))
            return LlmockServer(llmock, llmock.base_url(name))

        yield server_of


def settings(form, server):
    provider, parameters, _ = FORMS[form]
    return {
        "provider": provider,
        "model": f"{form}-1",
        "parameters": parameters,
        "base_url": server.base_url,
    }


async def seen(session, kind):
    async with aclosing(session.events()) as events:
        async for _, fact in events:
            if isinstance(fact, kind):
                return


def kinds(facts, *wanted):
    return [type(fact) for fact in facts if isinstance(fact, wanted)]


# 002-021
@pytest.mark.parametrize(("first", "second"), list(permutations(FORMS, 2)))
async def test_tools_in_flight_are_answered_by_another_vendors_model(first, second, server, llmock):
    before, after = server(first), server(second)
    agent = cueline.Agent(name="a", tools=[get_weather], **settings(first, before))
    async with asyncio.timeout(30), cueline.open_runtime("memory:", on="inline") as here:
        before.call(PARIS, ROME)
        session = await here.start(agent, "What is the weather?", open=True)
        await seen(session, ToolReturned)
        await await_until(lambda: HELD)
        await session.switch_model(cueline.ModelChoice(**settings(second, after)))
        await seen(session, AgentChanged)
        after.say("It rains in both.")
        HELD.pop().set()
        answers = [(await session.result()).text]
        continued = after.requests[-1]

        before.say("Still.")
        await session.send("And now?", model=cueline.ModelChoice(**settings(first, before)))
        answers.append((await session.result()).text)
        returned = before.requests[-1]
        facts = [fact async for _, fact in session.events()]

    assert ["It rains in both.", "Still."] == answers
    assert [] == kinds(facts, ModelFailed)
    assert FLOW == kinds(facts, *FLOW)
    reasons = [fact.reason for fact in facts if isinstance(fact, PromptPrefixChanged)]
    assert ["model_switched", "model_switched"] == reasons
    for form, body in ((second, continued), (first, returned)):
        FORMS[form][2](body)
        assert all(f"It rains in {city}." in json.dumps(body) for city in ("Paris", "Rome"))
    assert not llmock.verdict().findings
    assert not any(each.failed for each in llmock.requests)
