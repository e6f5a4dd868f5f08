"""`cueline tail -f` beside a session that nobody drives."""

import asyncio
from contextlib import asynccontextmanager
from functools import partial

import pytest

from cueline.actors.inbox import ask_start
from cueline.actors.presence import presence_of
from cueline.actors.session_owner import OrphanDetector
from cueline.actors.session_reader import SessionReader
from cueline.cli.tail import _say_left
from cueline.client.session_watcher import warn_of_orphan
from cueline.events.codec import Codec
from cueline.events.inbox import StartAsked
from cueline.events.journal import Journal
from cueline.events.log_url import LogUrl
from cueline.runtime.open_log import open_log
from cueline.stores import MemoryPresence, MemoryStore
from cueline.testing.clock import FakeClock
from tests.session_example import AGENT, NOW

ONE = "session-default/one"
LEFT = "one: nobody drives it now ({}); go on with\n  cueline resume one{} --log of.db\n"


@pytest.fixture
def clock():
    return FakeClock()


@pytest.fixture
def store(clock):
    return MemoryStore(clock)


@pytest.fixture
def board(clock):
    return MemoryPresence(clock)


@asynccontextmanager
async def watching(session_reader, clock, board, *, up=False):
    left = partial(_say_left, LogUrl.of("of.db"), "one")
    orphan_detector = OrphanDetector(ONE, session_reader.store, board, clock, taken_up=lambda: up)
    telling = asyncio.create_task(warn_of_orphan(session_reader, orphan_detector, clock, left))
    yield
    telling.cancel()


async def asked_for(store, clock):
    """Return session `one` as somebody follows it who asked for it."""
    journal = Journal(store, Codec(), clock.now)
    await ask_start(journal, "one", StartAsked(agent=AGENT, asked_at=NOW))
    return SessionReader(ONE, journal)


async def test_who_follows_is_told_each_time_that_nobody_drives_it(store, board, clock, capsys):
    owner = presence_of("inline")
    async with watching(await asked_for(store, clock), clock, board):
        await clock.advance(9)
        early = capsys.readouterr()
        await clock.advance(60)
        first = capsys.readouterr()
        await store.acquire(ONE, owner.incarnation, seen_epoch=0)
        await board.beat(owner)
        await clock.advance(3)
        await board.leave(owner.incarnation)
        await clock.advance(60)
        second = capsys.readouterr()

    assert ("", LEFT.format("nobody has taken it up yet", "")) == (early.err, first.err)
    assert LEFT.format(f"{owner.incarnation} has left it", "") == second.err
    assert "" == first.out + second.out


async def test_what_an_up_takes_up_is_no_news_to_who_follows(store, board, clock, capsys):
    async with watching(await asked_for(store, clock), clock, board, up=True):
        await clock.advance(60)

    assert "" == capsys.readouterr().err


async def test_nobody_has_to_drive_what_waits_for_a_person(asking, board, clock, capsys):
    async with open_log(asking.log) as log:
        session_reader = SessionReader(ONE, log.journal())
        async for _ in session_reader.read():
            pass
        async with watching(session_reader, clock, board):
            await clock.advance(60)

    assert "waiting" == session_reader.state.status
    assert "" == capsys.readouterr().err
