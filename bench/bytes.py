"""Measures the bytes on disk that the log takes for a turn.

The log is closed, and its WAL is written back. A turn has 1,000 characters of payload text: 500
characters of the model's reply, 100 of the tool's arguments, 400 of the tool's result. Names, ids,
JSON, hashes, indexes and the inbox take the remaining bytes.
A state snapshot of the session is beside the log. It can be deleted, and has a separate row.
The last ratio is to LangGraph, which records the same text of 400 turns with `SqliteSaver`.
Floors: 3.3 × the payload text, and 1/100 of LangGraph's bytes.
"""

import tempfile
from pathlib import Path

from bench.conversation import play
from bench.peer import peer
from bench.table import Row
from bench.text import TEXT
from cueline.runtime.loop import run

TURNS = 400


def stored(path: Path, *, snapshots: bool = False) -> int:
    """Return the bytes of a log and its WAL or, with *snapshots*, of the snapshots beside it."""
    files = path.parent.glob(f"{path.name}*")
    return sum(file.stat().st_size for file in files if ("snapshots" in file.name) == snapshots)


def measure() -> list[Row]:
    """Return the rows of this bench."""
    with tempfile.TemporaryDirectory(dir=".") as folder:
        ours, theirs = Path(folder, "log.db"), Path(folder, "peer.db")
        run(play(ours, TURNS))
        with peer("bench.peer_langgraph") as langgraph:
            langgraph.run(path=str(theirs), turns=TURNS)
        a_turn, peers_turn = stored(ours) / TURNS, stored(theirs) / TURNS
        beside = stored(ours, snapshots=True) / TURNS
    return [
        Row("stored bytes a turn", a_turn, "B", "≤ 3.3 ×", a_turn / TEXT, "its text"),
        Row("its state snapshot, beside the log", beside, "B"),
        Row("beside LangGraph's", a_turn, "B", "≤ 0.01 ×", a_turn / peers_turn, "LangGraph"),
    ]
