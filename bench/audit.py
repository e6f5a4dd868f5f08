"""Measures the read models on a log of many sessions: how fast they are filled, and asked.

The log has sessions of 41 events on average: requests, replies with text, calls, questions to
people and their answers. The rate is that of one process, which reads, decodes and projects the
log into an empty file, and makes the indexes. A page has the newest 1,000 events that match, or the
first events after a position. The quickest of several rounds counts.
EVENTS=1000000 in the environment measures a log of that size.
The aim of filling is 40,000 events a second; it has no floor, because it was never reached.
Floors: a page takes at most 50 ms, and 100 ms if it is of words.
"""

import os
import tempfile
import time
from contextlib import closing
from datetime import timedelta
from pathlib import Path
from typing import Any

from bench.audit_log import PEOPLE, RARE, write
from bench.table import Row
from cueline.projections.audit import audit
from cueline.projections.views import Views
from cueline.runtime.loop import run
from cueline.runtime.open_log import open_log

EVENTS = int(os.environ.get("EVENTS", "40000"))
ROUNDS = 5
PAGE = 1_001


def filters(views: Views) -> dict[str, dict[str, Any]]:
    """Return the filters to measure, by name."""
    half = views.checkpoint.position // 2
    middle = audit(views.db, after=half, type="ToolReturned", limit=1)[0]
    day = {"until": middle.recorded_at, "since": middle.recorded_at - timedelta(days=1)}
    return {
        "no filter": {},
        "one session": {"session": f"session-default/{middle.session}"},
        "one type": {"type": "ToolReturned"},
        "a rare type": {"type": "ApprovalDenied"},
        "one tool": {"tool": "run_command"},
        "one person": {"actor": f"user:{PEOPLE[7]}"},
        "all people": {"actor": "user"},
        "nobody of a kind": {"actor": "runner"},
        "one tree": {"correlation": middle.correlation_id},
        "between two times": day,
        "type, tool and times": {"type": "ToolStarted", "tool": "write_file", **day},
    }


WORDS: dict[str, dict[str, Any]] = {
    "a rare word": {"text": RARE},
    "two common words": {"text": "rm -rf"},
    "the beginning of a word": {"text": "src/*"},
    "words, type and tool": {"text": "rm -rf", "type": "ToolStarted", "tool": "run_command"},
    "words of a person's approvals": {"text": "rm", "actor": "user"},
}


def quickest(views: Views, asked: dict[str, Any]) -> float:
    """Return the time of a page in ms."""
    times = []
    for _ in range(ROUNDS):
        began = time.perf_counter()
        audit(views.db, limit=PAGE, **asked)
        times.append(time.perf_counter() - began)
    return 1000 * min(times)


async def measured(folder: Path) -> tuple[float, dict[str, float], dict[str, float]]:
    """Return the rate of filling, and the times of pages: by columns, and by words."""
    async with open_log(folder / "log.db") as log:
        await write(log, EVENTS)
        with closing(Views(folder / "views.db")) as views:
            began = time.perf_counter()
            end = await views.catch_up(log.store)
            rate = end / (time.perf_counter() - began)
            by_column = {name: quickest(views, each) for name, each in filters(views).items()}
            return rate, by_column, {name: quickest(views, each) for name, each in WORDS.items()}


def measure() -> list[Row]:
    """Return the rows of this bench."""
    with tempfile.TemporaryDirectory(dir=".") as folder:
        rate, by_column, by_words = run(measured(Path(folder)))
    return [
        Row(f"fill read models with {EVENTS:,} events", rate, "events/s"),
        *(Row(f"audit: {name}", each, "ms", "≤ 50") for name, each in by_column.items()),
        *(Row(f"audit: {name}", each, "ms", "≤ 100") for name, each in by_words.items()),
    ]
