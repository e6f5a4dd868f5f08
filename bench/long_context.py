"""Bytes of 100 turns on a long transcript: what the log grows by, closed and its WAL written back.

The session begins with a message of 800,000 characters, about 200,000 tokens; a turn has the 1,000
characters of payload text of the bench of bytes, a model call and a tool call.
The growth is what a log with 101 turns takes more than one with a single turn.
A state snapshot of the session lies beside the log; it can be deleted, and has a row of its own,
whole and not its growth.
The ratio is to the growth of LangGraph, which keeps the same text with `SqliteSaver`.
Floors: 2.5 KB a turn beside its unique text, and 1/100 of LangGraph's.
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
