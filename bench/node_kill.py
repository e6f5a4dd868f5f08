"""Measures how long the sessions of a node stand still after the node is killed.

Two machines, made of namespaces on this machine, have a Ray node each, and share one log in
PostgreSQL. Each has a host and a runner. Sessions run on both; their model takes half a second, and
their tool may be repeated. Then all processes of the second machine get SIGKILL at once.
Each of three kills has new machines and a new log; the median counts.
Silence is the only evidence of the end of these processes: the first machine cannot read the
process table of the second, as with real machines. Ray is set to notice a node's death within about
four seconds.
The clock runs until another host has appended to the last session of the lost host.
The dispatcher notices the loss when Ray does. But Ray may be wrong, so the sessions stay with their
host until it counts as dead, 10 s after its last heartbeat.
Floor: 2 s after the host counted as dead.
A machine without root or PostgreSQL has none of these rows.
"""

import asyncio
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import median

from bench.host_kill import REPLY, SESSIONS, TURNS
from bench.table import Row, plain
from cueline.actors.presence import SILENCE_SECONDS
from cueline.agents.agent import Agent
from cueline.client.client import open_client
from cueline.events.agent import Limits
from cueline.events.fleet import FLEET_STREAM, HostLost
from cueline.events.log_url import LogUrl
from cueline.events.store import EventStore, Presence
from cueline.events.stream import stream_name
from cueline.runtime.loop import run
from cueline.runtime.open_log import OpenLog, open_log
from cueline.stores.postgres.address import address_of
from cueline.stores.postgres.migration import migrate
from cueline.testing.wait import PATIENCE_SECONDS
from cueline.tools.tool import tool
from tests.postgres_server import PostgresServer, installed
from tests.torture.ground import CUELINE
from tests.torture.machines import Machines, missing

ROUNDS = 3
RUN_SECONDS = 10.0
"""A host that lived for less time is replaced after a pause."""


@tool(read_only=True)
async def note() -> str:
    """Do nothing."""
    return "noted"


def agent(folder: Path) -> Agent:
    """Return the agent of the sessions."""
    script = folder / "script.toml"
    script.write_text(REPLY * TURNS)
    return Agent(
        name="bench",
        provider="scripted",
        model=str(script),
        tools=[f"{Path(__file__).resolve()}:note"],
        limits=Limits(max_turns=TURNS),
    )


@contextmanager
def two_machines(folder: Path) -> Iterator[tuple[Machines, LogUrl]]:
    """Run two machines with an `up` on them; yield them and the log's URL."""
    machines = Machines(2)
    address = machines.network.address
    programs = next(iter(installed().values()))
    server = PostgresServer(programs, listen_addresses=address, max_connections="200")
    try:
        server.allow(machines.network.addresses)
        log = LogUrl.of(f"postgresql://ada@{address}/postgres?schema=cueline")
        migrate(address_of(log))
        machines.start()
        words = ["up", "--detach", "--address", machines.head.gcs, "--hosts", "2", "--runners", "2"]
        command = machines.head.within(folder, *CUELINE, *words, "--log", str(log))
        subprocess.run(command, env=machines.head.environ, check=True, capture_output=True)
        yield machines, log
    finally:
        machines.close()
        server.close()


async def host_of(log: OpenLog, pids: str) -> Presence:
    """Return the presence of the host whose process is in the namespace *pids*."""
    async with asyncio.timeout(PATIENCE_SECONDS):
        while True:
            for presence in await log.board.all():
                if presence.role == "host" and presence.pid_namespace == pids:
                    return presence
            await log.clock.sleep(0.1)


async def owned(store: EventStore, host: str) -> dict[str, int]:
    """Return the sessions of *host*, each with its epoch."""
    heads = await store.heads([stream_name("session", f"s{n}") for n in range(SESSIONS)])
    return {stream: head.epoch for stream, head in heads.items() if head.owner == host}


async def gone_on(store: EventStore, after: int, sessions: dict[str, int]) -> None:
    """Wait until each of *sessions* has appended by a later owner."""
    left = dict(sessions)
    async for event in store.follow(after, {"session"}):
        if event.epoch > left.get(event.stream, event.epoch):
            del left[event.stream]
        if not left:
            return


async def one_kill(folder: Path, machines: Machines, name: LogUrl) -> tuple[float, float, float]:
    """Return the seconds until the loss is noticed, the host counts as dead, and all continue."""
    who = agent(folder)
    async with open_client(name) as client:
        for number in range(SESSIONS):
            await client.start(who, "Go on.", id=f"s{number}")
    [lost] = machines.others
    async with open_log(name) as log:
        pids = str(lost.pids)
        host = (await host_of(log, pids)).incarnation
        await log.clock.sleep(RUN_SECONDS)
        sessions, position = await owned(log.store, host), await log.store.last_position()
        assert sessions, "the second host has no session"
        began, at = time.perf_counter(), time.time()
        lost.kill()
        dead = (await host_of(log, pids)).beat_us / 1e6 + SILENCE_SECONDS - at
        async with asyncio.timeout(PATIENCE_SECONDS):
            await gone_on(log.store, position, sessions)
        took = time.perf_counter() - began
        [noticed] = [
            recorded.recorded_us / 1e6 - at
            async for recorded, event in log.journal().read(FLEET_STREAM)
            if isinstance(event, HostLost) and event.incarnation == host
        ]
    return noticed, dead, took


def measure() -> list[Row]:
    """Return the rows of this bench."""
    if missing():
        return []
    rounds = []
    for _ in range(ROUNDS):
        with tempfile.TemporaryDirectory(prefix="cl-", dir="/tmp") as name:
            folder = Path(name)
            with two_machines(folder) as (machines, log):
                rounds.append(run(one_kill(folder, machines, log)))
    noticed, dead, took = (median(taken) for taken in zip(*rounds, strict=True))
    return [
        Row("SIGKILL of a node with a host and a runner: the dispatcher notices", noticed, "s"),
        Row("likewise: all sessions of that host go on", took, "s"),
        Row(
            name=f"likewise, after the host counted as dead ({dead:.3g} s)",
            value=median(each[2] - each[1] for each in rounds),
            unit="s",
            floor="≤ 2",
        ),
    ]


if __name__ == "__main__":
    print(plain(measure()))
