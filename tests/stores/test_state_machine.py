import asyncio
import tempfile
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    rule,
    run_state_machine_as_test,
)

from cueline.errors import CuelineError, StoreError
from cueline.events.store import ANY, Write
from cueline.stores.memory import MemoryStore
from cueline.stores.sqlite import SqliteStore
from cueline.testing.event_store_example import SetClock, all_of, check_chain, fact, whole_log
from tests.drawn import drawn
from tests.stores.list_model import ListModel

STREAMS = st.sampled_from([f"session-default/{name}" for name in "abc"] + ["inbox-default/a"])
KEYS = st.sampled_from([*"klmn", None, None])
PAYLOADS = st.lists(st.sampled_from([b"x", b"y"]), min_size=1, max_size=3)


@st.composite
def wishes(draw):
    """An append, with what it is right or wrong about left to the machine."""
    return [
        (
            draw(STREAMS),
            draw(PAYLOADS),
            draw(st.sampled_from(["right", "right", "right", "any", "late", "early"])),
            draw(st.sampled_from(["right", "right", "right", "none", "former", "next"])),
            draw(st.one_of(st.none(), st.none(), st.tuples(STREAMS, st.integers(0, 3)))),
        )
        for _ in range(draw(st.integers(1, 2)))
    ], draw(KEYS)


class StoreMachine(RuleBasedStateMachine):
    """The store and a list are asked the same, and answer the same."""

    def open(self):
        raise NotImplementedError

    @initialize()
    def begin(self):
        self.loop = asyncio.new_event_loop()
        self.folder = tempfile.TemporaryDirectory(
            dir="/dev/shm" if Path("/dev/shm").is_dir() else None
        )
        self.store = self.open()
        self.model = ListModel()
        self.asked = []

    def run(self, *wanted):
        async def all_at_once():
            return await asyncio.gather(*wanted, return_exceptions=True)

        return self.loop.run_until_complete(all_at_once())

    def make(self, options):
        parts, key = options
        return [self.write(*part) for part in parts], key

    def write(self, stream, payloads, version, epoch, after):
        there, current, _ = self.model.head(stream)
        if after and version == "right" and not there:
            there = after[1]
        versions = {"right": there, "any": ANY, "late": there - 1, "early": there + 1}
        epochs = {
            "right": current or None,
            "none": None,
            "former": current - 1,
            "next": current + 1,
        }
        drafts = [fact(payload) for payload in payloads]
        return Write(stream, drafts, versions[version], epochs[epoch], after)

    def compare(self, asked):
        self.asked.extend(asked)
        results = self.run(*(self.store.append(writes, key) for writes, key in asked))
        for (writes, key), result in zip(asked, results, strict=True):
            expected = self.model.append(writes, key)
            if isinstance(result, BaseException):
                assert isinstance(result, CuelineError), result
                assert expected is type(result)
            else:
                assert expected == (result.versions, result.position)

    @rule(options=wishes())
    def append(self, options):
        self.compare([self.make(options)])

    @rule(several=st.lists(wishes(), min_size=2, max_size=7))
    def append_together(self, several):
        self.compare([self.make(options) for options in several])

    @rule(data=st.data())
    def ask_again(self, data):
        if self.asked:
            self.compare([data.draw(st.sampled_from(self.asked))])

    @rule(stream=STREAMS, off=st.sampled_from([0, 0, 0, -1, 1]), owner=st.sampled_from("ab"))
    def acquire(self, stream, off, owner):
        seen = self.model.head(stream)[1] + off
        [result] = self.run(self.store.acquire(stream, owner, seen))

        expected = self.model.acquire(stream, owner, seen)
        assert expected == (type(result) if isinstance(result, StoreError) else result)

    @invariant()
    def the_log_is_the_list(self):
        if not hasattr(self, "model"):
            return
        [events] = self.run(whole_log(self.store))
        seen = [(e.stream, e.version, e.epoch, e.payload) for e in events]
        assert self.model.log == seen
        assert list(range(1, len(events) + 1)) == [event.position for event in events]

    def teardown(self):
        if not hasattr(self, "model"):
            return
        try:
            for stream in self.model.streams:
                self.compare_stream(stream)
        finally:
            self.run(self.store.close())
            self.loop.close()
            self.folder.cleanup()

    def compare_stream(self, stream):
        events, head = self.run(all_of(self.store, stream), self.store.head(stream))
        check_chain(events)
        seen = [(e.stream, e.version, e.epoch, e.payload) for e in events]
        assert self.model.read(stream) == seen
        assert self.model.head(stream) == (head.version, head.epoch, head.owner)


class MemoryMachine(StoreMachine):
    def open(self):
        return MemoryStore(SetClock())


class SqliteMachine(StoreMachine):
    def open(self):
        return SqliteStore.open(Path(self.folder.name, "log.db"), SetClock())

    @rule()
    def open_again(self):
        self.run(self.store.close())
        self.store = self.open()


@pytest.mark.parametrize("machine", [MemoryMachine, SqliteMachine])
def test_the_store_is_a_list_with_rules(machine):
    run_machine(machine, examples=drawn(25))


def run_machine(machine, *, examples):
    """Look for steps after which the machine's store and the list differ."""
    run_state_machine_as_test(
        machine,
        settings=settings(
            max_examples=examples,
            stateful_step_count=25,
            deadline=None,
            database=None,
            suppress_health_check=list(HealthCheck),
        ),
    )
