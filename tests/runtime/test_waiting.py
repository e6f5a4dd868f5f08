"""Who waits for a session in Python: what becomes of them when nobody drives it, or another."""

import asyncio
from dataclasses import replace

import pytest

from cueline.actors.inbox import post
from cueline.actors.presence import presence_of
from cueline.errors import (
    ClusterError,
    LogUnavailableError,
    SessionOwnedError,
    SessionUndrivenError,
)
from cueline.events.inbox import MessageSent
from cueline.events.log_url import LogUrl
from cueline.runtime.place import Place
from cueline.runtime.up_record import UpRecord
from cueline.testing.wait import await_until
from tests.scripted import HELD, HELLO, ask, holder, left_in_a_call

ONE = "session-default/one"


async def died_in_a_call(log):
    """Leave session `one` to nobody, as who drove it is known to be dead."""
    await log.board.beat(replace(await left_in_a_call(log), process_started=1))


async def outcome(waiting):
    """Return what has come of the wait: nobody waits for it here."""
    return await asyncio.wait_for(waiting, 0)


async def keep(seen, events):
    async for _, event in events:
        seen.append(event)


async def test_the_events_of_a_session_that_nobody_drives_end_with_that(runtime, log, clock):
    await died_in_a_call(log)
    await clock.advance(3600)
    async with runtime() as here:
        seen = []
        reading = asyncio.create_task(keep(seen, here.session("one").events()))
        await clock.advance(14)

        with pytest.raises(SessionUndrivenError, match=r"has ended.* `cueline resume one`"):
            await reading
    assert "ToolStarted" == seen[-1].type


async def test_a_session_that_nobody_takes_up_is_not_waited_for(runtime, log, clock):
    await ask(log)
    async with runtime() as here:
        waiting = asyncio.create_task(here.session("one").result())
        await clock.advance(14)

        with pytest.raises(SessionUndrivenError, match="nobody has taken it up yet"):
            await outcome(waiting)


async def test_a_takeover_in_time_is_no_news_to_who_waits(runtime, log, clock):
    await died_in_a_call(log)
    async with runtime() as watching, runtime() as driving:
        waiting = asyncio.create_task(watching.session("one").result())
        await clock.advance(9)
        await driving.resume("one")
        await clock.run_until(waiting.done, within=60)

        assert "Done." == (await outcome(waiting)).text


async def test_who_waits_for_a_person_waits_for_no_process(runtime):
    async with runtime() as here:
        await (await here.start(HELLO, "Go", id="one", open=True)).result()

    async with runtime() as there:
        assert "Good evening." == (await there.session("one").result()).text


async def test_a_message_that_nobody_reads_is_not_waited_for(runtime, log, clock):
    async with runtime() as here:
        await (await here.start(HELLO, "Go", id="one", open=True)).result()
    await post(log.journal(), ONE, MessageSent(lane="note", text="And?"))
    async with runtime() as there:
        waiting = asyncio.create_task(there.session("one").result())
        await clock.advance(14)

        with pytest.raises(SessionUndrivenError, match=r"inline-.* has left it"):
            await outcome(waiting)


async def test_events_after_the_last_one_end_at_once(runtime):
    async with runtime() as here:
        session = await here.start(HELLO, "Go", id="one")
        await session.result()

        assert [] == [item async for item in session.events(after=100)]


async def test_what_cannot_be_driven_here_is_not_waited_for_and_told_once(runtime, log, clock):
    told = []
    async with runtime(told) as here:
        await ask(log)
        waiting = asyncio.create_task(here.session("one").result())
        for _ in range(2):
            here.place.hear(ONE, ClusterError("Ray", "it has ended on this machine"))
        await clock.advance(3)

        with pytest.raises(ClusterError, match="it has ended"):
            await outcome(waiting)
    assert [ONE] == [stream for stream, _ in told]


def test_trouble_that_passes_is_waited_for():
    told = []
    place = Place(LogUrl.of("memory:"), on_trouble=lambda *trouble: told.append(trouble))

    place.hear(ONE, LogUnavailableError("log.db", "the disk is full"))

    assert 1 == len(told)
    assert place.trouble(ONE) is None


# I5: whoever has the session now cannot ask after the call, and need not wait for it.
async def test_who_was_taken_over_from_in_a_call_learns_by_whom(runtime, log, clock):
    async with runtime() as here:
        waiting = asyncio.create_task((await here.start(holder(), "Go", id="one")).result())
        await await_until(lambda: HELD)
        other = presence_of("other")
        await log.board.beat(other)
        await log.store.acquire(ONE, other.incarnation, seen_epoch=1)
        await clock.advance(3)

        with pytest.raises(SessionOwnedError, match=f"one: driven by process {other.pid} on "):
            await outcome(waiting)


@pytest.mark.parametrize(
    ("lasts", "stream", "taken_up"),
    [(True, ONE, True), (False, ONE, False), (True, "session-default/two", False)],
)
def test_a_runtime_takes_up_what_it_was_asked_for_as_long_as_its_place_lasts(
    tmp_path, lasts, stream, taken_up
):
    place = Place(LogUrl.of(tmp_path / "log.db"), {ONE})
    place.drives = lasts

    assert taken_up is place.takes_up(stream)


def test_a_living_up_takes_up_all(tmp_path):
    log = tmp_path / "log.db"
    UpRecord(address="a:1", namespace="n", version="1", keeper=presence_of("up")).write(log)

    assert Place(LogUrl.of(log)).takes_up(ONE)
