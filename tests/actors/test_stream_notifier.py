"""Who waits for a session to go on, beside others who wait for theirs."""

import asyncio

import pytest

from cueline.actors.stream_notifier import HEARD, StreamNotifier
from cueline.errors import LogUnavailableError
from cueline.events.store import ANY, Draft, Write
from cueline.stores.memory import MemoryStore
from cueline.testing.clock import FakeClock

ONE, TWO = "session-default/one", "session-default/two"


class CountedStore(MemoryStore):
    """Counts who follows it, and fails them when it is told to."""

    def __init__(self, clock):
        super().__init__(clock)
        self.following = 0
        self.ever = 0
        self.broken = False

    async def follow(self, *args):
        self.following += 1
        self.ever += 1
        try:
            async for recorded in super().follow(*args):
                if self.broken:
                    raise LogUnavailableError("log.db", "the disk is gone")
                yield recorded
        finally:
            self.following -= 1

    async def grow(self, stream, events=1):
        draft = Draft("SessionIdle", 1, b"{}", 0, "user")
        await self.append([Write(stream, [draft] * events, ANY)], key=f"{self.ever} {id(draft)}")


class Waiting:
    """Somebody who waits for a stream, and counts how often it was said to have grown."""

    def __init__(self, notifier, stream, but=()):
        self.rung = 0
        self.task = asyncio.create_task(self._wait(notifier, stream, but))

    async def _wait(self, notifier, stream, but):
        async for _ in notifier.changes(stream, but):
            self.rung += 1

    async def leave(self):
        self.task.cancel()
        await asyncio.wait([self.task])


@pytest.fixture
def clock():
    return FakeClock()


@pytest.fixture
def store(clock):
    return CountedStore(clock)


async def waiting(clock, notifier, *streams):
    """Return who waits for *streams*, each told once that there may be something to read."""
    all_ = [Waiting(notifier, stream) for stream in streams]
    await clock.settle()
    assert {1} == {each.rung for each in all_}
    return all_


async def test_the_log_is_followed_once_for_all_who_wait(clock, store):
    notifier = StreamNotifier(store)

    await waiting(clock, notifier, ONE, TWO, TWO)
    await waiting(clock, notifier, ONE)

    assert 1 == store.ever


async def test_each_hears_of_its_own_stream_alone(clock, store):
    one, two, also_two = await waiting(clock, StreamNotifier(store), ONE, TWO, TWO)

    await store.grow(TWO)
    await clock.settle()

    assert (1, 2, 2) == (one.rung, two.rung, also_two.rung)


async def test_a_waiter_is_not_notified_of_ignored_types(clock, store):
    notifier = StreamNotifier(store)
    deaf = Waiting(notifier, ONE, but={"SessionIdle"})
    (hears,) = await waiting(clock, notifier, ONE)

    await store.grow(ONE)
    await clock.settle()

    assert (1, 2) == (deaf.rung, hears.rung)


async def test_what_comes_before_the_first_look_is_not_missed(clock, store):
    notifier = StreamNotifier(store)
    waiter = Waiting(notifier, ONE)
    await store.grow(ONE)

    await clock.settle()

    assert 1 <= waiter.rung


async def test_the_log_is_not_followed_without_waiters(clock, store):
    one, two = await waiting(clock, StreamNotifier(store), ONE, TWO)

    await one.leave()
    await clock.settle()
    left = store.following
    await two.leave()
    await clock.settle()

    assert (1, 0) == (left, store.following)


async def test_who_comes_as_the_last_one_leaves_waits_all_the_same(clock, store):
    notifier = StreamNotifier(store)
    (first,) = await waiting(clock, notifier, ONE)

    first.task.cancel()
    second = Waiting(notifier, ONE)
    await clock.settle()
    await store.grow(ONE)
    await clock.settle()

    assert 2 == second.rung
    assert not second.task.done()


async def test_who_comes_after_a_failure_that_another_has_not_heard_of_looks_anew(clock, store):
    notifier = StreamNotifier(store)
    busy = notifier.changes(ONE)
    looks = asyncio.ensure_future(anext(busy))
    await clock.settle()
    store.broken = True
    await store.grow(ONE)
    await clock.settle()
    store.broken = False

    await waiting(clock, notifier, ONE)

    assert ((), 2) == (looks.result(), store.ever)
    with pytest.raises(LogUnavailableError, match="the disk is gone"):
        await anext(busy)


async def test_all_are_told_that_the_log_cannot_be_read_and_may_try_again(clock, store):
    notifier = StreamNotifier(store)
    one, two = await waiting(clock, notifier, ONE, TWO)

    store.broken = True
    await store.grow(ONE)
    await clock.settle()

    for each in (one, two):
        with pytest.raises(LogUnavailableError, match="the disk is gone"):
            await each.task
    store.broken = False
    (again,) = await waiting(clock, notifier, ONE)
    await store.grow(ONE)
    await clock.settle()
    assert 2 == again.rung


async def test_following_ends_when_the_last_waiter_leaves_after_a_failure(clock, store):
    notifier = StreamNotifier(store)
    busy = notifier.changes(ONE)
    looks = asyncio.ensure_future(anext(busy))
    await clock.settle()
    await looks
    store.broken = True
    await store.grow(ONE)
    await clock.settle()
    store.broken = False
    (other,) = await waiting(clock, notifier, ONE)

    await other.leave()
    await busy.aclose()
    await clock.settle()

    assert (0, 2) == (store.following, store.ever)


async def test_who_waits_is_handed_the_newest_events_and_no_more_than_a_few(clock, store):
    growing = StreamNotifier(store).changes(ONE)
    asked = asyncio.ensure_future(anext(growing))
    await clock.settle()
    before = asked.result()

    await store.grow(ONE, HEARD + 1)
    await clock.settle()

    heard = await anext(growing)
    assert ((), HEARD, HEARD + 1) == (before, len(heard), heard[-1].version)
    await growing.aclose()
