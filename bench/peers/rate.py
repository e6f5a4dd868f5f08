"""The rates of cueline, LangGraph and DBOS, measured in turn."""

import os
import tempfile
import time
from pathlib import Path
from statistics import median

from bench.conversation import play
from bench.peer import peer
from bench.table import Row
from cueline.runtime.loop import run

TURNS = 400
WARM_UP = 20
ROUNDS = 3
PEERS = ("LangGraph", "DBOS")


def fsync_ms(folder: Path) -> float:
    """Return the time of a bare fsync of a page, in ms."""
    taken = []
    with (folder / "page").open("wb", buffering=0) as file:
        for _ in range(200):
            file.write(bytes(4096))
            began = time.perf_counter()
            os.fsync(file.fileno())
            taken.append(time.perf_counter() - began)
    return 1_000 * median(taken)


def rounds(folder: Path) -> dict[str, list[float]]:
    """Return the seconds of cueline and its peers, measured in turn after a short warm-up."""
    taken: dict[str, list[float]] = {name: [] for name in ("cueline", *PEERS)}
    with peer("bench.peer_langgraph") as langgraph, peer("bench.peer_dbos") as dbos:
        for number, turns in enumerate([WARM_UP, *[TURNS] * ROUNDS]):
            taken["cueline"].append(run(play(folder / f"log{number}.db", turns)))
            database = str(folder / f"langgraph{number}.db")
            taken["LangGraph"].append(langgraph.run(path=database, turns=turns)["seconds"])
            taken["DBOS"].append(dbos.run(turns=turns)["seconds"])
    return {name: seconds[1:] for name, seconds in taken.items()}


def measure() -> list[Row]:
    """Return the rows of this bench."""
    with tempfile.TemporaryDirectory(dir=".") as name:
        folder = Path(name)
        fsync = fsync_ms(folder)
        taken = rounds(folder)
    rate = TURNS / median(taken["cueline"])
    ours = taken["cueline"]
    rows = [Row("a bare fsync", fsync, "ms")]
    for name in PEERS:
        ratio = median(theirs / one for one, theirs in zip(ours, taken[name], strict=True))
        rows.append(Row(f"one session beside {name}", rate, "turns/s", "≥ 2 ×", ratio, name))
    return rows
