"""A graph of LangGraph that stores its threads in a cueline log."""

import asyncio
import json
import runpy
import signal
import subprocess
import sys
from operator import add
from typing import Annotated, TypedDict
from uuid import uuid4

import pytest
from langgraph.checkpoint.base import empty_checkpoint
from langgraph.checkpoint.conformance import checkpointer_test, validate
from langgraph.graph import END, START, StateGraph
from typer.testing import CliRunner

from cueline.adapters.langgraph import CuelineSaver
from cueline.cli import app
from cueline.clock import SystemClock
from cueline.errors import InvalidNameError
from cueline.events.stream import category_of
from cueline.stores.backend import backend_of

GRAPH = """
import os, signal
from operator import add
from pathlib import Path
from typing import Annotated, TypedDict
from langgraph.graph import END, START, StateGraph
from cueline.adapters.langgraph import CuelineSaver

class State(TypedDict):
    said: Annotated[list[str], add]

def node(name):
    def run(state):
        with Path("ran.txt").open("a") as file:
            file.write(name)
        if name == "b" and __name__ == "__main__":
            os.kill(os.getpid(), signal.SIGKILL)
        return {"said": [name]}
    return run

graph = StateGraph(State)
for name, before in (("a", START), ("b", "a"), ("c", "b")):
    graph.add_node(name, node(name))
    graph.add_edge(before, name)
graph.add_edge("c", END)

def invoke(given):
    with CuelineSaver("log.db") as saver:
        config = {"configurable": {"thread_id": "t1"}}
        return graph.compile(saver).invoke(given, config, durability="sync")["said"]

if __name__ == "__main__":
    invoke({"said": ["go"]})
"""
"""As a script it is killed in the second of three nodes."""


class State(TypedDict):
    said: Annotated[list[str], add]


def graph_with(saver):
    graph = StateGraph(State)
    graph.add_node("answer", lambda state: {"said": [state["said"][-1].upper()]})
    graph.add_edge(START, "answer")
    graph.add_edge("answer", END)
    return graph.compile(saver)


def config_of(thread):
    return {"configurable": {"thread_id": thread}}


@pytest.fixture
def log(tmp_path):
    return tmp_path / "log.db"


@pytest.fixture
def saver(log):
    with CuelineSaver(log) as made:
        yield made


def said(saver, thread="t1"):
    found = saver.get_tuple(config_of(thread))
    return found and found.checkpoint["channel_values"]["said"]


async def events_of(log):
    store = backend_of(log).open(SystemClock(), read_only=True)
    try:
        return [event async for event in store.read_all()]
    finally:
        await store.close()


def cueline(*words):
    done = CliRunner().invoke(app, list(map(str, words)))
    assert 0 == done.exit_code, done.output
    return done.output


@pytest.mark.parametrize("kept", ["file", "memory"])
async def test_it_conforms_to_the_suite_of_langgraph(kept, tmp_path):
    @checkpointer_test(name=f"CuelineSaver, {kept}")
    async def made():
        place = "memory:" if kept == "memory" else tmp_path / f"{uuid4()}.db"
        with CuelineSaver(place) as saver:
            yield saver

    report = await validate(made)

    failures = {name: each.failures for name, each in report.results.items() if each.failures}
    assert {} == failures
    assert report.passed_all()


def test_a_graph_goes_on_after_sigkill_where_it_was(tmp_path, monkeypatch):
    (tmp_path / "graph.py").write_text(GRAPH)
    monkeypatch.chdir(tmp_path)

    killed = subprocess.run([sys.executable, "graph.py"], check=False, capture_output=True)
    said = runpy.run_path("graph.py")["invoke"](None)

    assert -signal.SIGKILL == killed.returncode, killed.stderr
    assert ["go", "a", "b", "c"] == said
    assert "abbc" == (tmp_path / "ran.txt").read_text()


def test_a_thread_outlives_its_saver(log):
    for word in ("one", "two"):
        with CuelineSaver(log) as saver:
            graph_with(saver).invoke({"said": [word]}, config_of("t1"))

    with CuelineSaver(log) as saver:
        assert ["one", "ONE", "two", "TWO"] == said(saver)


async def test_graphs_of_several_event_loops_and_threads_share_a_saver(saver):
    graph = graph_with(saver)

    await graph.ainvoke({"said": ["here"]}, config_of("t1"))
    await asyncio.to_thread(graph.invoke, {"said": ["there"]}, config_of("t1"))
    await asyncio.gather(*(graph.ainvoke({"said": [f"{n}"]}, config_of(f"n{n}")) for n in range(5)))

    assert ["here", "HERE", "there", "THERE"] == said(saver)
    assert [["3", "3"]] == [said(saver, "n3")]


def test_a_put_that_is_repeated_changes_nothing(saver):
    graph_with(saver).invoke({"said": ["one"]}, config_of("t1"))
    before = list(saver.list(config_of("t1")))
    newest = before[0]

    for _ in range(2):
        saver.put(newest.parent_config, newest.checkpoint, newest.metadata, {})
        saver.put_writes(newest.parent_config, [("said", ["again"])], "task")

    ids = [each.checkpoint["id"] for each in before]
    again = list(saver.list(config_of("t1")))
    assert ids == [each.checkpoint["id"] for each in again]
    assert 1 == [w[0] for w in again[1].pending_writes].count("task")


async def test_a_long_value_that_stays_is_stored_once(saver, log):
    long = "x" * 100_000
    graph = graph_with(saver)
    await graph.ainvoke({"said": [long]}, config_of("t1"))
    size = log.stat().st_size + log.with_name("log.db-wal").stat().st_size

    found = await saver.aget_tuple(config_of("t1"))
    for _ in range(10):
        await saver.aput(found.config, {**found.checkpoint, "id": str(uuid4())}, {}, {})

    assert log.stat().st_size + log.with_name("log.db-wal").stat().st_size < size + 10 * len(long)


def test_an_id_that_no_stream_can_have_is_a_thread_too(saver):
    for thread in ("Ada's thread / 1", "ÅÄÖ", "x" * 300):
        graph_with(saver).invoke({"said": [thread]}, config_of(thread))

        assert thread == said(saver, thread)[0]
    assert 3 == len({each.config["configurable"]["thread_id"] for each in saver.list(None)})


def test_threads_of_another_tenant_are_not_seen(log):
    with CuelineSaver(log, tenant="a") as one, CuelineSaver(log, tenant="b") as other:
        graph_with(one).invoke({"said": ["mine"]}, config_of("t1"))

        assert (None, []) == (said(other), list(other.list(None)))


def test_an_invalid_tenant_is_refused(log):
    with pytest.raises(InvalidNameError, match="a tenant is"):
        CuelineSaver(log, tenant="A-1")


class CountedStore:
    """A log that counts the events that are read from it."""

    def __init__(self, store):
        self._store = store
        self.count = 0

    def __getattr__(self, name):
        return getattr(self._store, name)

    async def read(self, *args):
        async for event in self._store.read(*args):
            self.count += 1
            yield event


@pytest.fixture
def counted(log, monkeypatch):
    """Return a saver, and its log that counts."""
    made = []

    class Backend:
        def open(self, clock):
            made.append(CountedStore(backend_of(log).open(clock)))
            return made[0]

    monkeypatch.setattr("cueline.adapters.langgraph.backend_of", lambda _: Backend())
    with CuelineSaver(log) as saver:
        yield saver, made[0]


def test_a_get_reads_as_many_events_in_a_long_thread_as_in_a_short_one(counted):
    saver, store = counted
    graph, config = graph_with(saver), config_of("t1")
    graph.invoke({"said": ["one"]}, config)
    first = next(iter(saver.list(config))).config
    taken = []
    for turns in (0, 20):
        for _ in range(turns):
            graph.invoke({"said": ["more"]}, config)
        for each in (config, first, {"configurable": {"thread_id": "t1", "checkpoint_ns": "new"}}):
            store.count = 0
            saver.get_tuple(each)
            taken.append(store.count)

    assert taken[:3] == taken[3:]
    assert max(taken) < 10


def test_a_pruned_thread_goes_on_and_its_log_is_whole(saver, log):
    graph = graph_with(saver)
    for word in ("one", "two"):
        graph.invoke({"said": [word]}, config_of("t1"))
    newest = saver.get_tuple(config_of("t1"))

    saver.prune(["t1", "never"])

    assert [newest] == list(saver.list(config_of("t1")))
    assert ["three", "THREE"] == graph.invoke({"said": ["three"]}, config_of("t1"))["said"][-2:]
    cueline("audit", "verify", "--log", log)
    with pytest.raises(ValueError, match="known are keep_latest, delete"):
        saver.prune(["t1"], strategy="keep_all")


async def test_a_checkpoint_that_is_put_while_others_are_pruned_stays(saver, monkeypatch):
    config = {"configurable": {"thread_id": "t1", "checkpoint_ns": ""}}
    saver.put(config, {**empty_checkpoint(), "id": "1"}, {}, {})
    newer = saver._stored(config, {**empty_checkpoint(), "id": "2"}, {})
    reads = []

    def read_then_put(read):
        async def instead(*place):
            found = await read(*place)
            reads.append(place)
            if len(reads) == 1:
                await saver._threads.append(("t1", "", "2"), [newer])
            return found

        return instead

    for owner, name in ((saver, "_needed"), (saver._threads, "places")):
        monkeypatch.setattr(owner, name, read_then_put(getattr(owner, name)))
    await saver.aprune(["t1"])

    assert "2" in [each.checkpoint["id"] async for each in saver.alist(config)]


def test_what_a_delta_channel_is_built_from_is_not_pruned(saver):
    config = {"configurable": {"thread_id": "t1", "checkpoint_ns": ""}}
    for id_, since in (("1", 5), ("2", 0), ("3", 1), ("4", 2)):
        metadata = {"counters_since_delta_snapshot": {"said": [since, since]}}
        config = saver.put(config, {**empty_checkpoint(), "id": id_}, metadata, {})

    saver.prune(["t1"])

    assert ["4", "3", "2"] == [each.checkpoint["id"] for each in saver.list(config_of("t1"))]


def test_deletions_of_runs_leave_the_newest_of_the_others(saver):
    config = {"configurable": {"thread_id": "t1", "checkpoint_ns": ""}}
    for id_, run in (("1", "a"), ("2", "b"), ("3", "b")):
        config = saver.put(config, {**empty_checkpoint(), "id": id_}, {"run_id": run}, {})

    saver.delete_for_runs(["b"])
    assert "1" == saver.get_tuple(config_of("t1")).checkpoint["id"]
    saver.delete_for_runs(["a"])
    assert None is saver.get_tuple(config_of("t1"))


@pytest.mark.parametrize("when", ["before", "after"])
async def test_a_put_while_a_thread_is_deleted_is_deleted_too(when, log, counted):
    saver, store = counted
    config = {"configurable": {"thread_id": "t1", "checkpoint_ns": "inner"}}
    saver.put(config, {**empty_checkpoint(), "id": "1"}, {}, {})
    puts = [("2", config), ("3", {"configurable": {"thread_id": "t1", "checkpoint_ns": "other"}})]

    async def heads(streams):
        found = await store.heads_of(streams) if when == "after" else None
        while puts:
            id_, at = puts.pop()
            await saver.aput(at, {**empty_checkpoint(), "id": id_}, {}, {})
        return found or await store.heads_of(streams)

    store.heads, store.heads_of = heads, store.heads
    saver.delete_thread("t1")

    assert [] == list(saver.list(config_of("t1"))) + puts
    stored = [e for e in await events_of(log) if e.type == "CheckpointStored"]
    assert [None] * 3 == [event.payload for event in stored]


async def test_nothing_of_a_deleted_thread_is_left_in_the_log(log):
    with CuelineSaver(log) as saver:
        for thread in ("t1", "t2"):
            graph_with(saver).invoke({"said": ["one"]}, config_of(thread))
        saver.delete_thread("t1")
        saver.delete_thread("never")
        assert (None, ["one", "ONE"]) == (said(saver), said(saver, "t2"))
        graph_with(saver).invoke({"said": ["anew"]}, config_of("t1"))
        assert ["anew", "ANEW"] == said(saver)

    events = await events_of(log)
    index = [e for e in events if e.stream == "checkpoint-default/t1"]
    deleted = [e.type for e in index].index("ThreadDeleted")
    assert {None} == {e.payload for e in index[:deleted]}
    kept = [e.type for e in events if e.payload and e.position < index[deleted].position]
    assert kept.count("CheckpointStored") == 3  # of t2
    assert {"checkpoint"} == {category_of(e.stream) for e in events}


def test_commands_work_with_a_log_of_threads(log, tmp_path):
    with CuelineSaver(log) as saver:
        graph_with(saver).invoke({"said": ["one" * 10_000]}, config_of("t1"))
        graph_with(saver).invoke({"said": ["two"]}, config_of("t2"))
        saver.delete_thread("t2")

    cueline("audit", "verify", "--log", log)
    cueline("log", "copy", log, tmp_path / "copy.db")
    cueline("audit", "verify", "--log", tmp_path / "copy.db")
    assert "CheckpointStored" in cueline(
        "audit", "--actor", "agent:langgraph", "--json", "--log", log
    )
    assert [] == json.loads(cueline("list", "--json", "--log", log))
    with CuelineSaver(tmp_path / "copy.db") as copy:
        assert "one" * 10_000 == said(copy)[0]
