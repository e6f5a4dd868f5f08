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
    assert report.passed_all_base()


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


async def test_nothing_of_a_deleted_thread_is_left_in_the_log(log):
    with CuelineSaver(log) as saver:
        for thread in ("t1", "t2"):
            graph_with(saver).invoke({"said": ["one"]}, config_of(thread))
        saver.delete_thread("t1")
        saver.delete_thread("never")
        assert (None, ["one", "ONE"]) == (said(saver), said(saver, "t2"))
        graph_with(saver).invoke({"said": ["anew"]}, config_of("t1"))
        assert ["anew", "ANEW"] == said(saver)

    events = [e for e in await events_of(log) if e.stream == "checkpoint-default/t1"]
    deleted = [e.type for e in events].index("ThreadDeleted")
    assert {None} == {e.payload for e in events[:deleted]}
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
