"""Telling a session something: an event in its inbox, never a call (I7)."""

import pytest

from cueline.actors.inbox import ask_start, asked_agent, new_id, post
from cueline.errors import RejectedError, UnknownSessionError
from cueline.events.inbox import MessageSent, ResumeAsked, StartAsked
from cueline.testing.fakes import tool_spec
from tests.actors.session_harness import SESSION, SessionHarness

NOTE = MessageSent(lane="note", text="Hello.")


def test_ids_are_short_and_differ():
    assert 10 == len(new_id())
    assert new_id() != new_id()


async def test_a_message_waits_in_the_log_while_nothing_is_running():
    # I7
    scene = SessionHarness([])
    await scene.outside.start("s", scene.agent)

    await post(scene.outside.journal, SESSION, NOTE)

    assert ["StartAsked", "MessageSent"] == await scene.outside.types("inbox-default/s")


async def test_the_agent_of_a_session_has_the_tools_that_were_accepted_since():
    scene = SessionHarness([])
    await scene.outside.start("s", scene.agent)
    accepted = tool_spec("pay").model_copy(update={"version": "2"})
    await post(scene.outside.journal, SESSION, ResumeAsked(tools=(accepted,)))

    agent = await asked_agent(scene.outside.journal, SESSION)

    assert ["1", "2"] == [t.version for t in agent.tools if t.name in {"save", "pay"}]


async def test_with_a_key_telling_twice_is_telling_once():
    scene = SessionHarness([])
    await scene.outside.start("s", scene.agent)

    first = await post(scene.outside.journal, SESSION, NOTE, key="k")
    second = await post(scene.outside.journal, SESSION, NOTE, key="k")

    assert first == second
    assert 2 == len(await scene.outside.types("inbox-default/s"))


async def test_who_says_it_is_recorded():
    scene = SessionHarness([])
    await scene.outside.start("s", scene.agent)

    await post(scene.outside.journal, SESSION, NOTE, by="user:ann")

    assert "user:ann" == [e async for e in scene.outside.store.read_all()][-1].actor


async def test_nothing_can_be_said_to_a_session_that_is_not_there():
    scene = SessionHarness([])

    with pytest.raises(UnknownSessionError):
        await post(scene.outside.journal, SESSION, NOTE)


async def test_an_id_is_given_once():
    scene = SessionHarness([])
    await scene.outside.start("s", scene.agent)
    other = StartAsked(agent=scene.agent, goal="another", asked_at=scene.clock.now())

    with pytest.raises(RejectedError):
        await ask_start(scene.outside.journal, "s", other)
