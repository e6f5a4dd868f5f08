"""Measures the bytes by which the log grows in 100 turns on a long transcript.

The log is closed, and its WAL is written back. The session begins with a message of 800,000
characters, about 200,000 tokens. A turn is a model call and a tool call, and has the 1,000
characters of payload text of the bench `bytes`.
The growth is the size of a log with 101 turns less the size of a log with one turn.
A state snapshot of the session is beside the log. It can be deleted, and has a separate row, which
shows the whole size and not the growth.
The ratio is to the growth of LangGraph, which records the same text with `SqliteSaver`.
Floors: 2.5 KB a turn beside its unique text, and 1/100 of LangGraph's growth.
"""

import tempfile
from pathlib import Path

from bench.bytes import stored
from bench.conversation import play
from bench.peer import peer
from bench.table import Row, plain
from bench.text import TEXT, text
from cueline.runtime.loop import run

TURNS = 100
TOKENS = 200_000
GOAL = text(0, 4 * TOKENS)


def measure() -> list[Row]:
    """Return the rows of this bench."""
    ours, theirs = [], []
    with tempfile.TemporaryDirectory(dir=".") as name, peer("bench.peer_langgraph") as langgraph:
        for turns in (1, 1 + TURNS):
            log, database = Path(name, f"{turns}.db"), Path(name, f"{turns}-peer.db")
            run(play(log, turns, GOAL))
            ours.append(stored(log))
            langgraph.run(path=str(database), turns=turns, goal=GOAL)
            theirs.append(stored(database))
        snapshot = stored(log, snapshots=True)
    a_turn, peers_turn = ((after - before) / TURNS for before, after in (ours, theirs))
    return [
        Row(
            name=f"stored bytes a turn on {TOKENS:,} tokens, beside its {TEXT:,} B of text",
            value=a_turn - TEXT,
            unit="B",
            floor="≤ 2,500",
        ),
        Row("beside LangGraph's there", a_turn, "B", "≤ 0.01 ×", a_turn / peers_turn, "LangGraph"),
        Row("the state snapshot there, beside the log", snapshot, "B"),
    ]


if __name__ == "__main__":
    print(plain(measure()))
