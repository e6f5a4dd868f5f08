"""Runs the conversation in LangGraph: a graph of a model and a tool, stored by `SqliteSaver`."""

import sqlite3
import time
from importlib.metadata import version
from operator import add
from pathlib import Path
from typing import Annotated, Any, TypedDict

from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.graph import END, START, StateGraph

from bench.peer import Answer, serve
from bench.text import ANSWERED, ASKED, SAID, text


class Talk(TypedDict):
    """The state of the graph; plain dicts take less room than LangChain's messages."""

    messages: Annotated[list[dict[str, Any]], add]
    turn: int


def ask_model(state: Talk) -> dict[str, Any]:
    """Return the model's reply at this turn."""
    turn = state["turn"] + 1
    call = {"id": f"call_{turn}", "name": "look_up", "arguments": {"query": text(turn, ASKED)}}
    message = {"role": "assistant", "text": text(turn, SAID), "calls": [call]}
    return {"messages": [message], "turn": turn}


def look_up(state: Talk) -> dict[str, Any]:
    """Return the tool's result."""
    turn = state["turn"]
    answer = text(turn, ANSWERED)
    return {"messages": [{"role": "tool", "call": f"call_{turn}", "text": answer}]}


def play(path: str, turns: int, goal: str = "Begin.") -> Answer:
    """Run *turns* turns in a new database."""
    graph = StateGraph(Talk)
    graph.add_node("model", ask_model)
    graph.add_node("tool", look_up)
    graph.add_edge(START, "model")
    graph.add_edge("model", "tool")
    graph.add_conditional_edges("tool", lambda state: "model" if state["turn"] < turns else END)
    database = sqlite3.connect(path, check_same_thread=False)
    compiled = graph.compile(checkpointer=SqliteSaver(database))
    opening: Talk = {"messages": [{"role": "user", "text": goal}], "turn": 0}
    began = time.perf_counter()
    compiled.invoke(
        opening,
        {"configurable": {"thread_id": "bench"}, "recursion_limit": 3 * turns},
        durability="sync",
    )
    seconds = time.perf_counter() - began
    database.close()
    return {"seconds": seconds, "bytes": Path(path).stat().st_size}


if __name__ == "__main__":
    serve(version("langgraph"), play)
