"""Measures turns a second on Ray, beside the same sessions inline, and the CPU time of a turn.

`cueline up` runs with one host, and then with two. A separate process, the driver, starts 200
sessions through the Python API, and awaits their results. The sessions are those of the bench
`api`. They answer at once, so the bench measures cueline's own work, and the calls between the
processes.
CPU time is the time that the processes of each role took between the first `start` and the last
`result`.
The writer is an actor if the log is in SQLite. In PostgreSQL each host writes by itself, and the
server's processes count as the writer.
One host and two hosts are measured in turn in the same run; the median of the rounds counts.
Two cores cannot show more turns with the second host, but they show its additional CPU time.
Floor: a turn takes at most 1.15 × the CPU time with two hosts, beside one host. A machine without
PostgreSQL has no rows of PostgreSQL.
With the second host, each call to the writer and to the runner probably carries less: host, writer
and runner take more CPU time for the same turns.
"""

import asyncio
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from statistics import median

import psutil

from bench.api import ask, result, talker
from bench.postgres import server
from bench.ray_start import command
from bench.session import SESSIONS, TURNS_EACH, WARM_TURNS
from bench.table import Row, plain
from cueline import open_runtime
from cueline.runtime.loop import run
from cueline.runtime.open_log import open_log
from cueline.runtime.up_record import find_up
from cueline.stores.postgres.address import address_of
from cueline.stores.postgres.migration import migrate
from tests.postgres_server import PostgresServer, installed

ROUNDS = 3
ROLES = ("host", "writer", "runner", "dispatcher", "driver", "Ray itself")


@dataclass(frozen=True, slots=True)
class Held:
    """The result of one measurement."""

    turns: int
    seconds: float
    cpu: Counter[str]
    """Seconds by role."""

    @property
    def rate(self) -> float:
        """The turns a second."""
        return self.turns / self.seconds

    def milliseconds(self, role: str) -> float:
        """Return the CPU time of *role* for a turn, in ms."""
        return 1000 * self.cpu[role] / self.turns

    @property
    def total(self) -> float:
        """The CPU time of all processes for a turn, in ms."""
        return 1000 * self.cpu.total() / self.turns


@contextmanager
def up(log: str, *options: str) -> Iterator[None]:
    """Run `cueline up` on *log* inside the block."""
    command("up", "--detach", "--log", log, *options)
    try:
        yield
    finally:
        command("down", "--log", log)


def cpu(roles: dict[psutil.Process, str]) -> Counter[str]:
    """Return the CPU seconds of each role until now."""
    took: Counter[str] = Counter()
    for process, role in roles.items():
        with suppress(psutil.NoSuchProcess):  # it counts with what its parent waited for
            times = process.cpu_times()
            took[role] += times.user + times.system
            took[role] += times.children_user + times.children_system
    return took


async def roles_of(log: str, server: psutil.Process | None) -> dict[psutil.Process, str]:
    """Return the role of each process of the `up` of *log*, and of its database's *server*."""
    async with open_log(log) as opened:
        names = {each.pid: each.role for each in await opened.board.all()}
        record = find_up(opened.url)
    assert record is not None
    keeper = psutil.Process(record.keeper.pid)
    roles = {psutil.Process(): "driver"}
    for process in [keeper, *keeper.children(recursive=True)]:
        is_writer = "LogWriterActor" in "".join(process.cmdline()[:1])
        roles[process] = "writer" if is_writer else names.get(process.pid, "Ray itself")
    for process in [server, *server.children(recursive=True)] if server else []:
        roles[process] = "writer"
    return roles


async def hold(log: str, folder: Path, server: psutil.Process | None) -> Held:
    """Run the sessions on the `up` of *log*, and return the result."""
    warm, agent = talker(folder, WARM_TURNS), talker(folder, TURNS_EACH)
    async with open_runtime(log) as runtime:
        first = [await runtime.start(warm, "Begin.") for _ in range(4)]
        await asyncio.gather(*(result(session) for session in first))
        roles = await roles_of(log, server)
        before, began = cpu(roles), time.perf_counter()
        started = await asyncio.gather(*(runtime.start(agent, "Begin.") for _ in range(SESSIONS)))
        await asyncio.gather(*(result(session) for session in started))
        seconds = time.perf_counter() - began
        roles |= await roles_of(log, server)
        return Held(SESSIONS * TURNS_EACH, seconds, cpu(roles) - before)


def on_hosts(
    number: int, new_log: Callable[[Path], str], server: psutil.Process | None = None
) -> Held:
    """Run the sessions in a new log with *number* hosts, and return the result."""
    with tempfile.TemporaryDirectory(dir=".") as name:
        folder = Path(name)
        log = new_log(folder)
        with up(log, "--hosts", str(number)):
            return run(hold(log, folder, server))


def rows_of(kind: str, one: list[Held], two: list[Held]) -> list[Row]:
    """Return the rows of one kind of log, with one host and with two."""
    rows = [
        Row(
            f"a turn on Ray, {kind}, 1 host: CPU time of {role}",
            median(held.milliseconds(role) for held in one),
            "ms",
        )
        for role in ROLES
    ]
    rows.append(
        Row(
            name=f"a turn on Ray, {kind}, 2 hosts: CPU time of all processes",
            value=median(held.total for held in two),
            unit="ms",
            floor="≤ 1.15 ×",
            ratio=median(b.total / a.total for a, b in zip(one, two, strict=True)),
            to=f"1 host ({median(held.total for held in one):.3g} ms)",
        )
    )
    return rows


def sqlite_log(folder: Path) -> str:
    """Return the name of a new log in SQLite."""
    return str(folder / "log.db")


def postgres_log(running: PostgresServer, _: Path) -> str:
    """Return the URL of a new log in PostgreSQL."""
    log = running.new_log()
    migrate(address_of(log))
    return str(log)


def measure() -> list[Row]:
    """Return the rows of this bench."""
    inline, one, two = [], [], []
    for _ in range(ROUNDS):
        with tempfile.TemporaryDirectory(dir=".") as name:
            inline.append(run(ask(Path(name), "inline", SESSIONS, TURNS_EACH)))
        one.append(on_hosts(1, sqlite_log))
        two.append(on_hosts(2, sqlite_log))
    rows = [
        Row(
            name=f"{SESSIONS} sessions on Ray, 1 host",
            value=median(held.rate for held in one),
            unit="turns/s",
            ratio=median(held.rate / here for held, here in zip(one, inline, strict=True)),
            to=f"the same inline ({median(inline):,.0f}/s)",
        ),
        Row(
            name="likewise, 2 hosts",
            value=median(held.rate for held in two),
            unit="turns/s",
            ratio=median(b.rate / a.rate for a, b in zip(one, two, strict=True)),
            to="1 host",
        ),
        *rows_of("SQLite", one, two),
    ]
    if not installed():
        return rows
    with server() as running:
        process = psutil.Process(running.process.pid)
        one, two = [], []
        for _ in range(ROUNDS):
            one.append(on_hosts(1, partial(postgres_log, running), process))
            two.append(on_hosts(2, partial(postgres_log, running), process))
    rows.append(
        Row(
            name=f"{SESSIONS} sessions on Ray and PostgreSQL, 1 host",
            value=median(held.rate for held in one),
            unit="turns/s",
            ratio=median(held.rate / here for held, here in zip(one, inline, strict=True)),
            to="SQLite, inline",
        )
    )
    return [*rows, *rows_of("PostgreSQL", one, two)]


if __name__ == "__main__":
    print(plain(measure()))
