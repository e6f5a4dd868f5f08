"""Who goes on with a session in Python, and with which nobody can."""

import pytest

from cueline.actors.inbox import ask_start, post
from cueline.agents.preflight import agent_to_record
from cueline.errors import (
    ConfigError,
    SessionFinishedError,
    SessionOwnedError,
    ToolImportError,
    UnknownSessionError,
)
from cueline.events.inbox import StartAsked, StopAsked
from cueline.testing.wait import await_until
from tests.scripted import HELD, HELLO, ask, holder, scripted

ONE = "session-default/one"
GONE = holder().spec().tools[0].model_copy(update={"target": "nowhere:hold"})


async def test_a_session_that_a_living_process_drives_is_not_resumed(runtime, log):
    async with runtime() as here, runtime() as there:
        await here.start(holder(), "Go", id="one")
        await await_until(lambda: HELD)

        with pytest.raises(SessionOwnedError):
            await there.resume("one")
        await here.resume("one")

    inbox = [fact.type async for _, fact in log.journal().read("inbox-default/one")]
    assert ["StartAsked"] == inbox  # it goes on anyway


async def test_a_session_that_has_ended_is_not_resumed(runtime):
    async with runtime() as here:
        await (await here.start(HELLO, "Go", id="one")).result()

        with pytest.raises(SessionFinishedError, match="one: the session has ended: completed"):
            await here.resume("one")


async def test_a_session_that_there_is_not_is_not_resumed(runtime):
    async with runtime() as here:
        with pytest.raises(UnknownSessionError):
            await here.resume("none")


async def test_a_session_whose_tools_are_gone_is_not_resumed(runtime, log):
    spec = agent_to_record(holder()).model_copy(update={"tools": (GONE,)})
    asked = StartAsked(agent=spec, asked_at=log.clock.now())
    await ask_start(log.journal(), "one", asked)
    async with runtime() as here:
        with pytest.raises(ToolImportError):
            await here.resume("one")


@pytest.mark.parametrize(
    ("lacks", "error"),
    [
        ({"tools": (GONE,)}, ToolImportError),
        ({"provider": "anthropic", "model": "m"}, ConfigError),
        ({"secrets": ("NOWHERE_SET",)}, ConfigError),
    ],
)
async def test_a_session_that_could_not_start_its_children_is_not_resumed(
    runtime, log, lacks, error
):
    spec = agent_to_record(scripted("reply = [{ calls = [{ name = 'scripted' }] }]", holder()))
    [(name, child)] = spec.agents.items()
    agents = {name: child.model_copy(update=lacks)}
    asked = StartAsked(agent=spec.model_copy(update={"agents": agents}), asked_at=log.clock.now())
    await ask_start(log.journal(), "one", asked)
    async with runtime() as here:
        with pytest.raises(error):
            await here.resume("one")


async def test_a_session_whose_workspace_is_gone_is_not_resumed(runtime, log, tmp_path):
    """Each call that needs it would fail, and the session might end with that."""
    place = tmp_path / "desk"
    place.mkdir()
    await ask(log, scripted('reply = [{ text = "Done." }]', workspace=place))
    place.rmdir()
    async with runtime() as here:
        with pytest.raises(ConfigError, match="desk: the workspace is not a folder"):
            await here.resume("one")

        place.mkdir()
        assert "Done." == (await (await here.resume("one")).result()).text


async def test_a_session_that_has_yet_to_read_that_it_stops_is_driven_to_its_end(runtime, log):
    await ask(log)
    await post(log.journal(), ONE, StopAsked())
    async with runtime() as here:
        session = await here.resume("one")

        assert "stopped" == (await session.result()).status


async def test_what_was_resumed_is_woken_when_its_time_has_come(runtime, clock):
    asking = holder(approval="all_writes", approval_seconds=60)
    async with runtime() as here:
        await (await here.start(asking, "Go", id="one")).result()

    async with runtime() as there:
        session = await there.resume("one")
        await clock.advance(61)

        assert "approval expired" == (await session.result()).text
