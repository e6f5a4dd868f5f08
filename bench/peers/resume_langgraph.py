"""LangGraph: the time from `invoke` on a long thread until its next node begins."""

import os
import signal
import sqlite3
import sys
import time
from operator import add
from pathlib import Path
from typing import Annotated, Any, TypedDict

from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.graph import END, START, StateGraph

from bench.text import ANSWERED, SAID, text

FOLDER, TURNS = Path(sys.argv[1]), int(sys.argv[2])


class Talk(TypedDict):
    """The state of the graph."""

    messages: Annotated[list[dict[str, Any]], add]
    turn: int


def last(_: Talk) -> dict[str, Any]:
    """End here, the first time in the middle."""
    if sys.argv[3] == "begin":
        os.kill(os.getpid(), signal.SIGKILL)
    print(1_000 * (time.perf_counter() - BEGAN), flush=True)
    return {}


def model(state: Talk) -> dict[str, Any]:
    """Return the model's reply at this turn."""
    turn = state["turn"] + 1
    return {"messages": [{"role": "assistant", "text": text(turn, SAID)}], "turn": turn}


def tool(state: Talk) -> dict[str, Any]:
    """Return the tool's result."""
    return {"messages": [{"role": "tool", "text": text(state["turn"], ANSWERED)}]}


graph = StateGraph(Talk)
graph.add_node("model", model)
graph.add_node("tool", tool)
graph.add_node("last", last)
graph.add_edge(START, "model")
graph.add_edge("model", "tool")
graph.add_conditional_edges("tool", lambda state: "model" if state["turn"] < TURNS else "last")
graph.add_edge("last", END)
saver = SqliteSaver(sqlite3.connect(FOLDER / "graph.db", check_same_thread=False))
compiled = graph.compile(checkpointer=saver)
BEGAN = time.perf_counter()
compiled.invoke(
    {"messages": [], "turn": 0} if sys.argv[3] == "begin" else None,
    {"configurable": {"thread_id": "one"}, "recursion_limit": 3 * TURNS + 10},
    durability="sync",
)
