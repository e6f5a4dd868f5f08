"""Who has charge of a log, without a cluster."""

import asyncio

import pytest

from cueline.actors.presence import BEAT_SECONDS, living, presence_of
from cueline.cluster.ray_call import DISPATCHER
from cueline.cluster.takeover import DispatcherLease
from cueline.errors import ClusterError, FencedError, LogLostError, LogUnavailableError
from cueline.events.codec import Codec
from cueline.events.fleet import DispatcherStarted, DispatcherStopped
from cueline.events.journal import Journal
from cueline.stores import MemoryPresence, MemoryStore
from cueline.testing.clock import NOON, FakeClock


class Shaky(MemoryStore):
    """A log that is away for its next append, or does not answer it."""

    away = None
    unheard = False
    meeting = None
    """Where those who look at it wait for each other, once."""

    async def head(self, stream):
        head = await super().head(stream)
        if (meeting := self.meeting) is not None:
            await meeting.wait()
            self.meeting = None
        return head

    async def append(self, writes, key):
        if self.away is not None:
            error, self.away = self.away, None
            raise error
        done = await super().append(writes, key)
        if self.unheard:
            self.unheard = False
            await asyncio.Event().wait()
        return done


class Scene:
    """A log, and dispatchers that want it."""

    def __init__(self):
        self.clock = FakeClock()
        self.store = Shaky(self.clock)
        self.board = MemoryPresence(self.clock)
        self.journal = Journal(self.store, Codec(), self.clock.now)

    def charge(self):
        return DispatcherLease(presence_of("dispatcher"), self.journal, self.board, self.clock)

    async def facts(self):
        return [fact async for _, fact in self.journal.read(DISPATCHER)]

    async def living(self):
        return [each.role for each in await living(self.board, self.clock.now())]


FIRST = DispatcherStopped(incarnation="dispatcher-1", at=NOON)
NEXT = DispatcherStopped(incarnation="dispatcher-2", at=NOON)


def started(up, epoch):
    return DispatcherStarted(
        incarnation="dispatcher-1",
        machine="here",
        pid=1,
        epoch=epoch,
        recover=True,
        up=up,
        at=NOON,
    )


@pytest.fixture
def scene():
    return Scene()


# I14: a fleet may take longer to start than silence counts as death.
async def test_whoever_took_a_log_lives_from_then_on_whatever_it_does(scene):
    await scene.charge().take()
    await scene.clock.advance(60)

    assert ["dispatcher"] == await scene.living()
    with pytest.raises(ClusterError, match=r"another `cueline up` has it \(process"):
        await scene.charge().take()
    assert ["dispatcher"] == await scene.living()


async def test_of_two_that_want_a_log_at_once_one_is_refused(scene):
    scene.store.meeting = asyncio.Barrier(2)

    takes = (scene.charge().take(), scene.charge().take())
    ends = await asyncio.gather(*takes, return_exceptions=True)

    [refused] = [end for end in ends if end is not None]
    assert "this log: another `cueline up` has it" in str(refused)
    assert ["dispatcher"] == await scene.living()


async def test_a_log_that_was_left_is_the_next_ones(scene):
    first, second = scene.charge(), scene.charge()
    await first.take()
    await first.leave()
    await scene.clock.advance(BEAT_SECONDS)
    left = await scene.living()

    await second.take()

    assert ([], 1, 2) == (left, first.epoch, second.epoch)


async def test_one_that_another_has_succeeded_records_nothing(scene):
    first, second = scene.charge(), scene.charge()
    await first.take()
    await first.leave()
    await second.take()

    with pytest.raises(FencedError):
        await first.record([FIRST])


async def test_what_cannot_be_recorded_now_is_recorded_later(scene):
    charge = scene.charge()
    await charge.take()
    scene.store.away = LogUnavailableError("log.db", "the disk is full")
    recording = asyncio.create_task(charge.record([FIRST]))

    await scene.clock.advance(BEAT_SECONDS)
    await recording

    assert [FIRST] == await scene.facts()


async def test_for_a_log_that_is_lost_nobody_waits(scene):
    charge = scene.charge()
    await charge.take()
    scene.store.away = LogLostError("log.db", "it was removed")

    with pytest.raises(LogLostError):
        await charge.record([FIRST])


# Ray may have started its dispatcher again since: what ran before is not what it found.
async def test_an_up_began_where_its_first_dispatcher_did(scene):
    for up in ("before", "now", "now"):
        charge = scene.charge()
        await charge.take()
        await charge.record([started(up, charge.epoch)])
        await charge.leave()

    assert 2 == await charge.began("now")


# `cueline down` may come in the middle of an append.
async def test_what_was_recorded_unheard_holds_up_nothing(scene):
    charge = scene.charge()
    await charge.take()
    scene.store.unheard = True
    unheard = asyncio.create_task(charge.record([FIRST]))
    await scene.clock.settle()
    unheard.cancel()
    heard = asyncio.create_task(charge.record([NEXT]))
    await scene.clock.settle()

    assert heard.done()
    assert [FIRST, NEXT] == await scene.facts()
