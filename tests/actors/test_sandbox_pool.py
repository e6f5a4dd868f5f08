"""The pool of sandboxes: slots, stops, fresh ones, and what is left after a crash."""

import asyncio
import threading
from collections import Counter
from uuid import uuid4

import pytest

from cueline.actors import sandbox_life
from cueline.actors.sandbox_life import sandbox_of
from cueline.actors.sandbox_pool import (
    SWEEP_SECONDS,
    WAKE_SECONDS,
    SandboxPool,
    SandboxReady,
    SandboxWish,
    SlotWait,
)
from cueline.actors.sandbox_port import LOG_LABEL, NAME_LABEL, SESSION_LABEL
from cueline.errors import SandboxError, SandboxGoneError
from cueline.events.codec import Codec
from cueline.events.codes import Cause
from cueline.events.inbox import SlotOffered
from cueline.events.journal import FactWrite, Journal
from cueline.events.sandbox import SandboxAsked, SandboxDone, SandboxFailed, SandboxSpec
from cueline.events.session import SessionContinued, SessionStopped, SessionWaiting
from cueline.events.store import ANY
from cueline.events.stream import sibling
from cueline.sandboxes.local import LocalBackend
from cueline.stores import MemoryStore
from cueline.testing.clock import FakeClock
from tests.session_example import started

SPEC = SandboxSpec(backend="local")
ASKS = SessionWaiting(kind="approval", cause=Cause(code="approval_pending"))
QUEUES = SessionWaiting(kind="sandbox", cause=Cause(code="no_slot"))
GOES_ON = SessionContinued(by="message")
STOPPED = SessionStopped(by="user")


class Dies(BaseException):
    """The end of the pool's process."""


class Vendor(LocalBackend):
    """A back-end that does what a test wants at an act: `before` or `after` it is done."""

    def __init__(self, folder):
        super().__init__({"XDG_STATE_HOME": str(folder), "PATH": "/usr/bin:/bin"})
        self.acts = Counter()
        self.faults = {}

    def _fault(self, moment, act):
        if (error := self.faults.pop((moment, act), None)) is not None:
            raise error

    def _do(self, act, *given):
        self._fault("before", act)
        self.acts[act] += 1
        done = getattr(super(), act)(*given)
        self._fault("after", act)
        return done

    def create(self, spec, labels, environment):
        return self._do("create", spec, labels, environment)

    def start(self, place):
        return self._do("start", place)

    def stop(self, place):
        return self._do("stop", place)

    def delete(self, place):
        return self._do("delete", place)


class Pool(SandboxPool):
    """A pool whose sandboxes are looked after when the test says so."""

    def _watch(self):
        pass


class Bench:
    """A log, a back-end, and pools of both."""

    def __init__(self, folder):
        self.clock = FakeClock()
        self.store = MemoryStore(self.clock)
        self.journal = Journal(self.store, Codec(), self.clock.now)
        self.vendor = Vendor(folder)

    def pool(self, slots=10, grace=0.0):
        return Pool(
            self.journal,
            self.clock,
            lambda _: self.vendor,
            on_trouble=lambda *_: None,
            slots=slots,
            grace_seconds=grace,
        )

    async def say(self, session, *facts):
        """Append facts of a session, which is started with the first."""
        stream = f"session-default/{session}"
        first = (await self.store.head(stream)).version == 0
        steps = [[fact] for fact in ([started(), *facts] if first else facts)]
        if not steps:
            return stream
        write = FactWrite(stream=stream, steps=steps, expected_version=ANY, actor="test")
        await self.journal.append([write], key=uuid4().hex)
        return stream

    async def attach(self, pool, session, number=0):
        stream = await self.say(session)
        return await pool.attach(SandboxWish(stream, SPEC, number, {}))

    async def facts(self, stream):
        return [fact async for _, fact in self.journal.read(stream, 0)]

    def left(self):
        """Return the states of all sandboxes that the back-end has for this log."""
        found = self.vendor.find({LOG_LABEL: self.store.log_id})
        return Counter(each.state for each in found)


@pytest.fixture
def bench(tmp_path):
    return Bench(tmp_path)


async def acts_of(bench, session, number=1):
    facts = await bench.facts(sandbox_of(f"session-default/{session}", number))
    return [(type(fact).__name__.removeprefix("Sandbox"), fact.act) for fact in facts]


async def test_the_intent_is_recorded_before_the_creation(bench):
    """003-045, I2."""
    ready = await bench.attach(bench.pool(), "a")

    assert isinstance(ready, SandboxReady)
    assert [("Asked", "create"), ("Done", "create")] == await acts_of(bench, "a")
    assert "started" == bench.vendor.state(ready.place)


async def test_the_eleventh_waits_and_gets_the_slot_of_one_that_stops(bench):
    """003-004, 003-009, 003-077, D33: only started sandboxes count, and the first who asked is
    next."""
    pool = bench.pool()
    for number in range(10):
        assert isinstance(await bench.attach(pool, f"s{number}"), SandboxReady)

    assert SlotWait(0, 10) == await bench.attach(pool, "x")
    assert SlotWait(1, 10) == await bench.attach(pool, "y")
    await bench.say("x", QUEUES)
    await bench.say("y", QUEUES)
    await pool.tick()
    assert Counter(started=10) == bench.left()

    await bench.say("s3", ASKS)
    await pool.tick()

    assert Counter(started=9, stopped=1) == bench.left()
    assert [SlotOffered(pool="main")] == await bench.facts("inbox-default/x")
    assert isinstance(await bench.attach(pool, "x"), SandboxReady)
    assert SlotWait(0, 10) == await bench.attach(pool, "y")


async def test_a_session_that_waits_stops_its_sandbox_and_comes_back_to_it(bench):
    """C19, 003-012, 003-013, 003-030, 003-035, 003-074: its files stay, and nothing is cloned
    again."""
    pool = bench.pool()
    ready = await bench.attach(pool, "a")
    bench.vendor.put(ready.place, "cloned", b"repository")
    await bench.say("a", ASKS)
    await pool.tick()
    assert "stopped" == bench.vendor.state(ready.place)
    await bench.say("a", GOES_ON)

    again = await bench.attach(bench.pool(), "a", ready.number)

    assert ready == again
    assert b"repository" == bench.vendor.get(again.place, "cloned")
    assert {"create": 1, "start": 2, "stop": 1} == bench.vendor.acts  # a creation starts it
    assert [("Asked", "stop"), ("Done", "stop"), ("Asked", "start"), ("Done", "start")] == (
        await acts_of(bench, "a")
    )[2:]


async def test_a_short_wait_within_the_grace_stops_nothing(bench):
    """C19: the grace."""
    pool = bench.pool(grace=30)
    await bench.attach(pool, "a")
    await bench.say("a", ASKS)
    await pool.tick()
    await bench.clock.advance(29)
    await pool.tick()
    assert Counter(started=1) == bench.left()

    await bench.clock.advance(1)
    await pool.tick()

    assert Counter(stopped=1) == bench.left()


async def test_a_session_that_has_ended_leaves_no_sandbox(bench):
    pool = bench.pool()
    await bench.attach(pool, "a")
    await bench.say("a", STOPPED)

    await pool.tick()

    assert Counter() == bench.left()
    assert ("Done", "delete") == (await acts_of(bench, "a"))[-1]


async def test_a_sandbox_that_is_gone_is_replaced_by_a_fresh_one_which_is_recorded(bench):
    """003-012, 003-033."""
    pool = bench.pool()
    ready = await bench.attach(pool, "a")
    await bench.say("a", ASKS)
    await pool.tick()
    LocalBackend.delete(bench.vendor, ready.place)
    await bench.say("a", GOES_ON)

    fresh = await bench.attach(pool, "a", ready.number)

    assert 2 == fresh.number
    assert "there is no folder" in fresh.lost
    failed = (await bench.facts(sandbox_of("session-default/a", 1)))[-1]
    assert isinstance(failed, SandboxFailed)
    assert failed.gone
    again = await bench.attach(pool, "a", 2)
    assert (2, fresh.place, "") == (again.number, again.place, again.lost)


async def test_a_back_end_that_only_makes_broken_ones_is_not_asked_for_ever(bench):
    pool = bench.pool()
    bench.vendor._fault = lambda moment, act: (_ for _ in ()).throw(SandboxGoneError("p", "broken"))

    with pytest.raises(SandboxError, match="gone at once: broken"):
        await bench.attach(pool, "a")


async def test_a_stop_that_is_late_does_not_follow_the_next_start(bench, monkeypatch):
    """A vendor that does not answer in time is waited for before it is asked again."""
    pool, goes_on = bench.pool(), threading.Event()
    ready = await bench.attach(pool, "a")
    await bench.say("a", ASKS)
    stop, start, order = bench.vendor.stop, bench.vendor.start, []

    def late(place):
        goes_on.wait(30)
        stop(place)
        order.append("stop")

    monkeypatch.setattr(bench.vendor, "stop", late)
    monkeypatch.setattr(bench.vendor, "start", lambda place: (order.append("start"), start(place)))
    monkeypatch.setattr(sandbox_life, "ACT_SECONDS", 0.2)
    with pytest.raises(SandboxError, match=r"no answer within 0\.2 s"):
        await pool.tick()
    assert ("Failed", "stop") == (await acts_of(bench, "a"))[-1]

    monkeypatch.setattr(sandbox_life, "ACT_SECONDS", 30.0)
    await bench.say("a", GOES_ON)
    threading.Timer(0.3, goes_on.set).start()

    assert ready == await bench.attach(pool, "a", ready.number)
    assert ["stop", "start"] == order
    assert Counter(started=1) == bench.left()


async def test_a_value_of_its_environment_is_in_no_failure(bench):
    """I11."""
    pool, secret = bench.pool(), "c4nary-0123456789"
    bench.vendor.faults["before", "create"] = OSError(f"{secret} is no token")
    stream = await bench.say("a")

    with pytest.raises(SandboxError) as raised:
        await pool.attach(SandboxWish(stream, SPEC, 0, {"TOKEN": secret}))

    assert secret not in str(raised.value)
    failed = (await bench.facts(sandbox_of(stream, 1)))[-1]
    assert "is no token" in failed.message
    assert secret not in failed.message


async def test_a_back_end_that_fails_keeps_no_other_from_being_looked_after(bench):
    pool = bench.pool()
    for name in ("a", "b"):
        await bench.attach(pool, name)
        await bench.say(name, ASKS)
    bench.vendor.faults["before", "stop"] = OSError("away")

    with pytest.raises(SandboxError, match="away"):
        await pool.tick()
    assert Counter(started=1, stopped=1) == bench.left()
    await pool.tick()

    assert Counter(stopped=2) == bench.left()


async def test_the_end_of_the_process_stops_the_sandboxes_of_those_that_rest(bench):
    pool = SandboxPool(bench.journal, bench.clock, lambda _: bench.vendor, on_trouble=print)
    await bench.attach(pool, "a")
    await bench.say("a", ASKS)

    await pool.close()

    assert Counter(stopped=1) == bench.left()


async def test_a_fork_that_has_not_begun_keeps_its_sandbox(bench):
    pool = bench.pool()
    await bench.attach(pool, "a")
    labels = {LOG_LABEL: bench.store.log_id, NAME_LABEL: "sandbox-default/fork.1"}
    bench.vendor.create(SPEC, {**labels, SESSION_LABEL: "session-default/fork"}, {})
    said = FactWrite("inbox-default/fork", [[SlotOffered(pool="main")]], ANY, actor="test")
    await bench.journal.append([said], key=uuid4().hex)

    await pool.tick()

    assert Counter(started=1, stopped=1) == bench.left()


async def test_a_failure_is_recorded_with_its_cause_and_the_slot_is_kept(bench):
    pool = bench.pool()
    bench.vendor.faults["before", "create"] = OSError("no room on the disk")

    with pytest.raises(SandboxError, match="OSError: no room on the disk"):
        await bench.attach(pool, "a")

    assert [("Asked", "create"), ("Failed", "create")] == await acts_of(bench, "a")
    assert isinstance(await bench.attach(pool, "a"), SandboxReady)


async def test_who_waits_for_a_slot_and_is_stopped_does_not_keep_it(bench):
    pool = bench.pool(slots=1)
    await bench.attach(pool, "a")
    await bench.attach(pool, "head")
    await bench.attach(pool, "next")
    await bench.say("head", STOPPED)
    await bench.say("next", QUEUES)
    await bench.say("a", STOPPED)

    await pool.tick()
    await pool.tick()

    assert [SlotOffered(pool="main")] == await bench.facts("inbox-default/next")


async def test_a_slot_that_nobody_comes_for_goes_to_the_next(bench):
    pool = bench.pool(slots=1)
    await bench.attach(pool, "a")
    for name in ("absent", "next"):
        await bench.attach(pool, name)
        await bench.say(name, QUEUES)
    await bench.say("a", STOPPED)
    await pool.tick()
    await pool.tick()
    assert [] == await bench.facts("inbox-default/next")

    await bench.clock.advance(WAKE_SECONDS)
    await pool.tick()

    assert [SlotOffered(pool="main")] == await bench.facts("inbox-default/next")
    # Once for the slot, and once to ask again.
    assert [SlotOffered(pool="main")] * 2 == await bench.facts("inbox-default/absent")


async def test_two_pools_give_no_more_slots_than_one(bench):
    """I3."""
    pools = [bench.pool(slots=3), bench.pool(slots=3)]

    answers = await asyncio.gather(
        *(bench.attach(pools[number % 2], f"s{number}") for number in range(9))
    )

    assert 3 == sum(isinstance(each, SandboxReady) for each in answers)
    assert {"started": 3} == bench.left()


@pytest.mark.parametrize("act", ["create", "start", "stop", "delete"])
@pytest.mark.parametrize("moment", ["before", "after"])
async def test_a_pool_that_dies_at_an_act_leaves_no_orphan(bench, moment, act):
    """003-041, 003-045: the next pool finds what is there by its labels."""
    pool = bench.pool()
    bench.vendor.faults[moment, act] = Dies()

    async def live():
        ready = await bench.attach(pool, "a")
        await bench.say("a", ASKS)
        await pool.tick()
        await bench.say("a", GOES_ON)
        await bench.attach(pool, "a", ready.number)
        await bench.say("a", STOPPED)
        await pool.tick()

    with pytest.raises(Dies):
        await live()
    bench.vendor.faults.clear()

    state = [type(fact) for fact in await bench.facts("session-default/a")]
    if SessionStopped not in state:
        await bench.say("a", STOPPED)
    await bench.clock.advance(SWEEP_SECONDS)
    await bench.pool().tick()

    assert Counter() == bench.left()


@pytest.mark.parametrize("act", ["create", "start"])
@pytest.mark.parametrize("moment", ["before", "after"])
async def test_a_session_whose_pool_died_gets_one_sandbox(bench, moment, act):
    pool = bench.pool()
    bench.vendor.faults[moment, act] = Dies()
    with pytest.raises(Dies):
        await bench.attach(pool, "a")

    ready = await bench.attach(bench.pool(), "a")

    assert 1 == ready.number
    assert Counter(started=1) == bench.left()


async def test_what_runs_without_a_slot_is_stopped(bench):
    pool = bench.pool()
    ready = await bench.attach(pool, "a")
    await bench.say("a", ASKS)
    await pool.tick()
    LocalBackend.start(bench.vendor, ready.place)

    await bench.clock.advance(SWEEP_SECONDS)
    await bench.attach(pool, "b")
    await pool.tick()

    assert "stopped" == bench.vendor.state(ready.place)


async def test_facts_of_a_sandbox_name_its_session_and_what_it_has(bench):
    """003-025, 003-037."""
    await bench.attach(bench.pool(), "a")

    asked, done = await bench.facts(sandbox_of("session-default/a", 1))

    assert isinstance(asked, SandboxAsked)
    assert ("session-default/a", SPEC) == (asked.session, asked.spec)
    assert isinstance(done, SandboxDone)
    assert sibling("session-default/a", "sandbox") + ".1" == sandbox_of("session-default/a", 1)
