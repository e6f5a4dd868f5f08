"""Measures the cost of an append, beside the cost of a commit by the database alone.

The bare variant is SQLite on the same file system, with the same columns, the same rows, `UNIQUE
(stream, version)` and `synchronous = FULL`. Its WAL is as warm as cueline's.
cueline appends as sessions do: as the owner of a stream, without a key.
Floors: 0.5 × the bare variant for one caller; for 256 callers, 0.30 × bare commits of 100 rows.
"""

import asyncio
import os
import statistics
import tempfile
from collections.abc import Callable
from pathlib import Path
from time import perf_counter

from bench.table import Row, eased, plain
from cueline.clock import SystemClock
from cueline.events.store import Draft, Write
from cueline.runtime.loop import run
from cueline.sqlite_library import sqlite_library
from cueline.stores.sqlite import SqliteStore

ROUNDS = 7
SINGLE = 300
CALLERS = 256
EACH = 8
PAYLOAD = b'{"effect":"1.0","output":"' + b"x" * 260 + b'"}'
TABLE = """
CREATE TABLE events (
    position INTEGER PRIMARY KEY, stream INTEGER NOT NULL, version INTEGER NOT NULL,
    seq INTEGER NOT NULL, step INTEGER NOT NULL, type TEXT NOT NULL, schema INTEGER NOT NULL,
    occurred_us INTEGER NOT NULL, recorded_us INTEGER NOT NULL, epoch INTEGER NOT NULL,
    actor TEXT NOT NULL, correlation_id TEXT, causation_id TEXT, attrs TEXT,
    payload BLOB, salt BLOB, payload_hash BLOB NOT NULL, hash BLOB NOT NULL,
    UNIQUE (stream, version)
) STRICT
"""
INSERT = f"INSERT INTO events VALUES ({', '.join('?' * 18)})"


def draft() -> Draft:
    """Return an event as a session appends it."""
    return Draft("ToolReturned", 1, PAYLOAD, 1_795_000_000_000_000, "runner", '{"tool":"search"}')


class Bare:
    """The bare variant: SQLite without cueline."""

    def __init__(self, path: Path) -> None:
        self._db = sqlite_library().connect(path, isolation_level=None)
        self._db.execute("PRAGMA journal_mode = WAL")
        self._db.execute("PRAGMA synchronous = FULL")
        self._db.execute(TABLE)
        self._position = 0
        self._versions: dict[int, int] = {}

    def row(self, stream: int) -> tuple[object, ...]:
        """Return the next row of *stream*."""
        self._position += 1
        version = self._versions[stream] = self._versions.get(stream, 0) + 1
        event = draft()
        return (
            *(self._position, stream, version, 0, 0, event.type, event.schema),
            *(event.occurred_us, event.occurred_us, 1, event.actor, None, None, event.attrs),
            *(event.payload, os.urandom(16), os.urandom(32), os.urandom(32)),
        )

    def single(self, count: int) -> float:
        """Return the number of inserts a second, each with its own commit."""
        rows = [self.row(0) for _ in range(count)]
        began = perf_counter()
        for row in rows:
            self._db.execute("BEGIN IMMEDIATE")
            self._db.execute(INSERT, row)
            self._db.execute("COMMIT")
        return count / (perf_counter() - began)

    def many(self) -> float:
        """Return the number of inserts a second in commits of 100."""
        rows = [self.row(1 + caller) for _ in range(EACH) for caller in range(CALLERS)]
        began = perf_counter()
        for start in range(0, len(rows), 100):
            self._db.execute("BEGIN IMMEDIATE")
            self._db.executemany(INSERT, rows[start : start + 100])
            self._db.execute("COMMIT")
        return len(rows) / (perf_counter() - began)


class Ours:
    """cueline's variant: the store behind its port, with all checks and the chain."""

    def __init__(self, path: Path) -> None:
        self._store = SqliteStore.open(path, SystemClock())
        self._epochs: dict[str, int] = {}
        self._versions: dict[str, int] = {}

    async def append(self, stream: str) -> None:
        """Append an event as the owner of *stream*."""
        if stream not in self._epochs:
            self._epochs[stream] = await self._store.acquire(stream, "bench", 0)
        version = self._versions.get(stream, 0)
        write = Write(stream, [draft()], version, self._epochs[stream])
        await self._store.append([write], key=None)
        self._versions[stream] = version + 1

    async def single(self, count: int) -> float:
        """Return the number of appends a second of one caller."""
        began = perf_counter()
        for _ in range(count):
            await self.append("session-default/single")
        return count / (perf_counter() - began)

    async def many(self) -> float:
        """Return the number of appends a second of all callers together."""

        async def call(stream: str) -> None:
            for _ in range(EACH):
                await self.append(stream)

        began = perf_counter()
        await asyncio.gather(*(call(f"session-default/{n}") for n in range(CALLERS)))
        return CALLERS * EACH / (perf_counter() - began)

    async def close(self) -> None:
        """Close the log's file."""
        await self._store.close()


async def rounds(count: int) -> dict[str, list[float]]:
    """Measure both variants in turn, so that other load of the machine affects both."""
    figures: dict[str, list[float]] = {name: [] for name in ("bare", "ours", "bulk", "group")}
    with tempfile.TemporaryDirectory(dir=".") as folder:
        bare, ours = Bare(Path(folder, "bare.db")), Ours(Path(folder, "log.db"))
        for number in range(count + 1):
            taken = {
                "bare": bare.single(SINGLE),
                "ours": await ours.single(SINGLE),
                "bulk": bare.many(),
                "group": await ours.many(),
            }
            if number:  # the first round warms both up
                for name, figure in taken.items():
                    figures[name].append(figure)
        await ours.close()
    return figures


def measure(count: int = ROUNDS) -> list[Row]:
    """Return the rows of this bench."""
    figures = run(rounds(count))
    median: Callable[[str], float] = lambda name: statistics.median(figures[name])  # noqa: E731
    ratio: Callable[[str, str], float] = lambda one, other: statistics.median(  # noqa: E731
        a / b for a, b in zip(figures[one], figures[other], strict=True)
    )
    return [
        Row(name="bare insert and commit", value=median("bare"), unit="events/s"),
        Row(
            name="append, 1 caller",
            value=median("ours"),
            unit="events/s",
            floor="≥ 0.5 ×",
            ratio=ratio("ours", "bare"),
            to="bare insert and commit",
        ),
        Row(name="bare executemany in commits of 100", value=median("bulk"), unit="events/s"),
        Row(
            name="append, 256 callers",
            value=median("group"),
            unit="events/s",
            floor="≥ 0.30 ×",
            ratio=ratio("group", "bulk"),
            to="bare executemany",
        ),
    ]


def sample() -> list[Row]:
    """Return the rows of three rounds, with half of each floor."""
    return [eased(row) for row in measure(3)]


if __name__ == "__main__":
    print(plain(measure()))
