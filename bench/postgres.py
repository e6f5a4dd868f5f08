"""Measures appends to a log in PostgreSQL, its followers, and sessions on it.

The server runs on this machine, with `fsync`, and shares the processor with its clients.
A writer is a process with 64 callers. Each caller appends one event of about 300 bytes after
another, as the owner of its stream, without a key. Events that are queued during a database call go
into the next database call.
The ratio is to the same function without chain and checks, which takes the lock, inserts the
events, moves the heads and returns. The same clients call both functions in turn.
All appends of a log take one lock, which is released after the commit. So no two appends share a
commit, and `commit_delay`, in microseconds, has no commits to combine.
The highest number of turns counts five events a turn.
A follower in a separate process gets a notification of each append. Its time is counted from before
the append until it has the event.
The sessions are the 200 inline sessions of the bench `session`; the ratio is to the same sessions
on SQLite.
Floor: 0.3 × the function without chain and checks. A machine without PostgreSQL has none of these
rows.
"""

import asyncio
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from itertools import product
from pathlib import Path
from statistics import median, quantiles
from typing import TypeAlias

from msgspec import structs

from bench.append import draft
from bench.postgres_client import FOLLOWED
from bench.session import SESSIONS, TURNS_EACH, play
from bench.table import Row, number, plain
from cueline.clock import SystemClock
from cueline.events.store import ANY, Write
from cueline.runtime.loop import run
from cueline.stores.backend import backend_of
from cueline.stores.postgres.address import address_of
from cueline.stores.postgres.connections import connected
from cueline.stores.postgres.migration import migrate
from tests.postgres_server import NONE, PostgresServer, installed

WRITERS = (1, 2, 4, 8)
DELAYS = (0, 2_000)
SECONDS = 1.5
ROUNDS = 4
EVENTS_A_TURN = 5
PAUSE_SECONDS = 0.002
Taken: TypeAlias = tuple[float, list[float]]
BARE = Path(__file__).with_name("postgres_bare.sql")
SETTINGS = {"fsync": "on", "full_page_writes": "on", "autovacuum": "on", "shared_buffers": "128MB"}


@contextmanager
def server() -> Iterator[PostgresServer]:
    """Run a server whose data is in the folder for temporary files."""
    programs = next(iter(installed().values()))
    running = PostgresServer(programs, root=tempfile.gettempdir(), **SETTINGS)
    try:
        yield running
    finally:
        running.close()


def rate(writers: Sequence[subprocess.Popen[str]]) -> Taken:
    """Return the events a second of all writers together, and the time of each append in ms."""
    begins = time.time() + 0.2
    for writer in writers:
        writer.stdin.write(f"{begins} {begins + SECONDS}\n")
        writer.stdin.flush()
    taken = [each for writer in writers for each in json.loads(writer.stdout.readline())]
    return len(taken) / SECONDS, taken


def followed(url: str) -> list[float]:
    """Return for each append the time in ms from its request until a follower has read it."""
    with _client("follow", url) as client:
        run(append_now_and_then(url))
        read: list[float] = json.loads(client.stdout.readline())
    return read


async def append_now_and_then(url: str) -> None:
    """Append the events that the follower waits for, one by one."""
    store = backend_of(url).open(SystemClock())
    for key in range(FOLLOWED):
        event = structs.replace(draft(), occurred_us=time.time_ns() // 1_000)
        await store.append([Write("inbox-default/bench", [event], ANY)], key=str(key))
        await asyncio.sleep(PAUSE_SECONDS)
    await store.close()


@contextmanager
def _client(what: str, url: str) -> Iterator[subprocess.Popen[str]]:
    """Start a client, and wait until it is ready."""
    command = [sys.executable, "-m", "bench.postgres_client", what, url]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, text=True, stdin=pipe, stdout=pipe) as client:
        client.stdout.readline()
        yield client


def of_writers(running: PostgresServer) -> list[Row]:
    """Return the rows of each number of writers, and of the highest number of turns."""
    ours, bare = running.new_log(), running.new_log()
    for url in (ours, bare):
        migrate(address_of(url))
    with connected(address_of(bare)) as db:
        db.execute(BARE.read_bytes())
    rows: list[Row] = []
    with ExitStack() as stack:
        pairs = [
            [stack.enter_context(_client("append", str(url))) for url in (ours, bare)]
            for _ in range(WRITERS[-1])
        ]
        for delay, writers in product(DELAYS, WRITERS):
            with connected(address_of(ours)) as db:
                db.execute(f"ALTER SYSTEM SET commit_delay = {delay}".encode())
                db.execute("SELECT pg_reload_conf()")
            sides = tuple(zip(*pairs[:writers], strict=True))
            # The first round warms both up.
            rounds = [(rate(sides[0]), rate(sides[1])) for _ in range(ROUNDS)][1:]
            rows.append(_row(writers, delay, rounds))
    highest = max(row.value for row in rows) / EVENTS_A_TURN
    return [*rows, Row(f"the most of these, at {EVENTS_A_TURN} events a turn", highest, "turns/s")]


def _row(writers: int, delay: int, rounds: Sequence[tuple[Taken, Taken]]) -> Row:
    return Row(
        name=f"PostgreSQL: {writers} × 64 callers, commit_delay {delay}",
        value=median(events for (events, _), _ in rounds),
        unit=f"events/s, {_spread([each for (_, taken), _ in rounds for each in taken])}",
        floor="≥ 0.3 ×",
        ratio=median(events / bare for (events, _), (bare, _) in rounds),
        to="without chain and checks",
    )


def _spread(taken: Sequence[float]) -> str:
    cut = quantiles(taken, n=100)
    return f"p50 {number(cut[49])} ms, p99 {number(cut[98])} ms"


def of_followers(running: PostgresServer) -> list[Row]:
    """Return the rows of a follower."""
    migrate(address_of(url := running.new_log()))
    cut = quantiles(followed(str(url)), n=100)
    return [Row("PostgreSQL: followed, p50", cut[49], "ms"), Row("likewise, p99", cut[98], "ms")]


def of_sessions(running: PostgresServer) -> list[Row]:
    """Return the row of sessions."""
    rounds = []
    for _ in range(ROUNDS):
        migrate(address_of(url := running.new_log()))
        with tempfile.TemporaryDirectory(dir=".") as folder:
            file = run(play(Path(folder, "log.db"), SESSIONS, TURNS_EACH))
        rounds.append((run(play(str(url), SESSIONS, TURNS_EACH)), file))
    name = f"{SESSIONS} sessions at once on PostgreSQL"
    ratio = median(ours / file for ours, file in rounds)
    return [Row(name, median(ours for ours, _ in rounds), "turns/s", "", ratio, "SQLite")]


def measure() -> list[Row]:
    """Return the rows of this bench; none without a server's programs."""
    if not installed():
        print(NONE, file=sys.stderr)
        return []
    with server() as running:
        return [*of_writers(running), *of_followers(running), *of_sessions(running)]


if __name__ == "__main__":
    print(plain(measure()))
