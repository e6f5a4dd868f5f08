"""Who waits for a session in Python: what becomes of them when nobody drives it, or another."""

import asyncio
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import timedelta

import pytest
from pydantic import ValidationError

import cueline
from cueline.actors.inbox import ask_start, post
from cueline.actors.presence import presence_of
from cueline.errors import (
    ClusterError,
    LogUnavailableError,
    NotPendingError,
    RejectedError,
    SessionFinishedError,
    SessionOwnedError,
    SessionUndrivenError,
    ToolImportError,
    UnknownSessionError,
)
from cueline.events.inbox import MessageSent, StartAsked, StopAsked
from cueline.inline import inline
from cueline.library import Here, Runtime, Troubles
from cueline.runtime import Log, recorded
from cueline.stores import MemoryPresence, MemoryStore
from cueline.testing.clock import FakeClock
from cueline.testing.wait import await_until

ONE = "session-default/one"
SCRIPT = 'reply = [{ calls = [{ name = "hold", arguments = {} }] }, { text = "Done." }]'
HELD = []


@cueline.tool
async def hold() -> str:
    """Never come back."""
    HELD.append(1)
    await asyncio.Event().wait()
    return ""


def agent(script=SCRIPT, **policy):
    return cueline.Agent(
        name="holder",
        provider="scripted",
        model="hold",
        parameters={"script": script},
        tools=[hold],
        policy=cueline.Policy(in_doubt="tell", **policy),
    )


HELLO = agent('reply = [{ text = "Good evening." }]')


@pytest.fixture
def clock():
    return FakeClock()


@pytest.fixture
def log(tmp_path, clock):
    store, board = MemoryStore(clock), MemoryPresence(clock)
    return Log(path=tmp_path / "log.db", store=store, board=board, clock=clock)


@asynccontextmanager
async def runtime(log, told=None):
    """Open a runtime as `open_runtime` does, on a log with a clock of ours."""
    scope, troubles = set(), Troubles(lambda *trouble: told is not None and told.append(trouble))
    async with inline(log, scope=scope, on_trouble=troubles.hear) as here:
        yield Runtime(log, Here(log.path, here, troubles, scope))


async def ask(log, spec=HELLO):
    """Have somebody ask for session `one` whom nobody hears."""
    return await ask_start(
        log.journal(), "one", StartAsked(agent=recorded(spec), goal="Go", asked_at=log.clock.now())
    )


async def left_in_a_call(log):
    """Have a process die that drove session `one`; its presence stays."""
    HELD.clear()
    async with inline(log, scope=None, on_trouble=print) as former:
        await former.place([await ask(log, agent())])
        await await_until(lambda: HELD)
    await log.board.beat(replace(former.presence, process_started=1))


class Waiter:
    """Somebody who awaits a session's result."""

    def __init__(self, session):
        self._task = asyncio.create_task(session.result())

    @property
    def waits(self):
        return not self._task.done()

    async def result(self):
        return await asyncio.wait_for(self._task, 0)


async def keep(seen, events):
    async for event in events:
        seen.append(event)


async def test_who_waits_for_a_session_that_nobody_drives_any_more_is_told_so(log, clock):
    await left_in_a_call(log)
    async with runtime(log) as here:
        waiter = Waiter(here.session("one"))
        await clock.advance(9)
        assert waiter.waits

        await clock.advance(5)

        with pytest.raises(
            SessionUndrivenError,
            match=r"nobody drives it now \(process \d+ on \S+ has",
        ):
            await waiter.result()


async def test_the_events_of_a_session_that_nobody_drives_end_with_that(log, clock):
    await left_in_a_call(log)
    await clock.advance(3600)
    async with runtime(log) as here:
        seen = []
        reading = asyncio.create_task(keep(seen, here.session("one").events()))
        await clock.advance(14)

        with pytest.raises(SessionUndrivenError, match=r"has ended.* `cueline resume one`"):
            await reading
    assert "ToolStarted" == seen[-1].type


async def test_a_machine_that_slept_is_no_news_to_who_waits(log, clock):
    HELD.clear()
    async with runtime(log) as watching, runtime(log) as driving:
        await driving.start(agent(), "Go", id="one")
        await await_until(lambda: HELD)
        waiter = Waiter(watching.session("one"))
        await clock.advance(4)
        clock._now += timedelta(hours=1)
        await clock.advance(14)

        assert waiter.waits


async def test_a_session_that_nobody_takes_up_is_not_waited_for(log, clock):
    await ask(log)
    async with runtime(log) as here:
        waiter = Waiter(here.session("one"))
        await clock.advance(14)

        with pytest.raises(SessionUndrivenError, match="nobody has taken it up yet"):
            await waiter.result()


async def test_a_takeover_in_time_is_no_news_to_who_waits(log, clock):
    await left_in_a_call(log)
    async with runtime(log) as watching, runtime(log) as driving:
        waiter = Waiter(watching.session("one"))
        await clock.advance(9)
        await driving.resume("one")
        await clock.run_until(lambda: not waiter.waits, within=60)

        assert "Done." == (await waiter.result()).text


async def test_who_waits_for_a_person_waits_for_no_process(log):
    async with runtime(log) as here:
        await (await here.start(HELLO, "Go", id="one", open=True)).result()

    async with runtime(log) as there:
        assert "Good evening." == (await there.session("one").result()).text


async def test_a_message_that_nobody_reads_is_not_waited_for(log, clock):
    async with runtime(log) as here:
        await (await here.start(HELLO, "Go", id="one", open=True)).result()
    await post(log.journal(), ONE, MessageSent(lane="note", text="And?"))
    async with runtime(log) as there:
        waiter = Waiter(there.session("one"))
        await clock.advance(14)

        with pytest.raises(SessionUndrivenError, match=r"inline-.* has left it"):
            await waiter.result()


async def test_events_after_the_last_one_end_at_once(log):
    async with runtime(log) as here:
        session = await here.start(HELLO, "Go", id="one")
        await session.result()

        assert [] == [fact async for fact in session.events(after=100)]


async def test_what_cannot_be_driven_here_is_not_waited_for_and_told_once(log, clock):
    told = []
    async with runtime(log, told) as here:
        await ask(log)
        waiter = Waiter(here.session("one"))
        for _ in range(2):
            here._here.troubles.hear(ONE, ClusterError("Ray", "it has ended on this machine"))
        await clock.advance(3)

        with pytest.raises(ClusterError, match="it has ended"):
            await waiter.result()
    assert [ONE] == [stream for stream, _ in told]


async def test_trouble_that_passes_is_waited_for(log):
    told = []
    troubles = Troubles(lambda *trouble: told.append(trouble))

    troubles.hear(ONE, LogUnavailableError("log.db", "the disk is full"))

    assert 1 == len(told)
    assert troubles.of(ONE) is None


# I5: whoever has the session now cannot ask after the call, and need not wait for it.
async def test_who_was_taken_over_from_in_a_call_learns_by_whom(log, clock):
    HELD.clear()
    async with runtime(log) as here:
        waiter = Waiter(await here.start(agent(), "Go", id="one"))
        await await_until(lambda: HELD)
        other = presence_of("other")
        await log.board.beat(other)
        await log.store.acquire(ONE, other.incarnation, seen_epoch=1)
        await clock.advance(3)

        with pytest.raises(SessionOwnedError, match=f"one: driven by process {other.pid} on "):
            await waiter.result()


async def test_a_session_that_a_living_process_drives_is_not_resumed(log):
    HELD.clear()
    async with runtime(log) as here, runtime(log) as there:
        await here.start(agent(), "Go", id="one")
        await await_until(lambda: HELD)

        with pytest.raises(SessionOwnedError):
            await there.resume("one")
        await here.resume("one")

    inbox = [fact.type async for _, fact in log.journal().read("inbox-default/one")]
    assert ["StartAsked", "ResumeAsked"] == inbox


async def test_a_session_that_has_ended_is_not_resumed(log):
    async with runtime(log) as here:
        await (await here.start(HELLO, "Go", id="one")).result()

        with pytest.raises(SessionFinishedError, match="one: the session has ended: completed"):
            await here.resume("one")


async def test_a_session_that_there_is_not_is_not_resumed(log):
    async with runtime(log) as here:
        with pytest.raises(UnknownSessionError):
            await here.resume("none")


async def test_a_session_whose_tools_are_gone_is_not_resumed(log):
    spec = recorded(agent())
    gone = spec.tools[0].model_copy(update={"target": "nowhere:hold"})
    asked = StartAsked(agent=spec.model_copy(update={"tools": (gone,)}), asked_at=log.clock.now())
    await ask_start(log.journal(), "one", asked)
    async with runtime(log) as here:
        with pytest.raises(ToolImportError):
            await here.resume("one")


# I7: what is sent again because nobody knows whether it arrived is there once.
async def test_what_is_said_twice_with_a_key_is_said_once(log):
    async with runtime(log) as here:
        session = await here.start(HELLO, "Go", id="one", open=True)
        await session.result()
        for _ in range(2):
            await session.send("And?", key="start")

    inbox = [fact.type async for _, fact in log.journal().read("inbox-default/one")]
    assert ["StartAsked", "MessageSent"] == inbox


async def test_a_session_that_has_ended_takes_no_wishes_and_may_be_stopped_all_the_same(log):
    async with runtime(log) as here:
        session = await here.start(HELLO, "Go", id="one")
        await session.result()

        for wish in (session.pause, session.resume, lambda: session.raise_limits(max_turns=99)):
            with pytest.raises(SessionFinishedError):
                await wish()
        await session.stop()

    inbox = [fact.type async for _, fact in log.journal().read("inbox-default/one")]
    assert ["StartAsked"] == inbox


async def test_a_session_that_stops_takes_no_messages(log):
    HELD.clear()
    async with runtime(log) as here:
        session = await here.start(agent(), "Go", id="one")
        await await_until(lambda: HELD)
        await session.stop()

        with pytest.raises(RejectedError, match="one: it was asked to stop"):
            await session.send("Wait")


async def test_a_session_that_has_yet_to_read_that_it_stops_is_driven_to_its_end(log):
    await ask(log)
    await post(log.journal(), ONE, StopAsked())
    async with runtime(log) as here:
        session = await here.resume("one")

        assert "stopped" == (await session.result()).status


# I13: what is recorded has to be read again, also in a fork.
@pytest.mark.parametrize("seconds", [float("inf"), float("nan"), 1e300])
async def test_a_time_that_no_calendar_holds_is_no_limit(log, seconds):
    await ask(log)
    async with runtime(log) as here:
        with pytest.raises(ValidationError):
            await here.session("one").raise_limits(max_active_seconds=seconds)


async def test_a_limit_that_cannot_be_raised_is_refused_at_once(log):
    async with runtime(log) as here:
        session = await here.start(HELLO, "Go", id="one", open=True)
        await session.result()

        with pytest.raises(RejectedError, match="no max_cost: a limit can be raised, not"):
            await session.raise_limits(max_cost="1.00")
        with pytest.raises(RejectedError, match="max_turns is 50 already"):
            await session.raise_limits(max_turns=2)


async def test_a_raise_is_compared_with_one_that_is_not_read_yet(log):
    await ask(log)
    async with runtime(log) as here:
        session = here.session("one")
        await session.raise_limits(max_turns=100)

        with pytest.raises(RejectedError, match=r"100 already.* \(asked for before"):
            await session.raise_limits(max_turns=90)


async def test_a_question_that_was_answered_takes_no_other_answer(log):
    sensitive = agent(approval="all_writes")
    async with runtime(log) as here:
        session = await here.start(sensitive, "Go", id="one", open=True)
        (asked,) = [f async for f in session.events() if f.type == "ApprovalRequested"]
        await session.deny(asked)
        await session.result()

        with pytest.raises(NotPendingError, match=r"one\.1\.0\.1: it does not wait any more"):
            await session.approve(asked)
