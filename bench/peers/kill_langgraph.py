"""LangGraph: a node with the call, and `SqliteSaver`."""

import sqlite3
import sys
from importlib.metadata import version
from pathlib import Path
from typing import TypedDict

from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.graph import END, START, StateGraph

from bench.peers.kill_tool import pay

FOLDER = Path(sys.argv[1])


class State(TypedDict):
    """The state of the graph."""

    result: str


graph = StateGraph(State)
graph.add_node("pay", lambda _: {"result": pay(FOLDER)})
graph.add_edge(START, "pay")
graph.add_edge("pay", END)
saver = SqliteSaver(sqlite3.connect(FOLDER / "graph.db", check_same_thread=False))
found = graph.compile(checkpointer=saver).invoke(
    {"result": ""} if sys.argv[2] == "begin" else None,
    {"configurable": {"thread_id": "one"}},
    durability="sync",
)
print(version("langgraph"), found["result"], sep="\t")
