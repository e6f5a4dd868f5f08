"""Measures how much 500 streaming replies slow down their host, and another session in that host.

A model server in a separate process streams 500 replies at once, each with ten pieces a second. One
host receives all 500 replies. Meanwhile another session in that host, whose model and tool answer
at once, runs its turns. A task measures how late the event loop wakes it.
The turns are compared with earlier turns of such a session, while no reply streams.
The whole measurement is repeated three times; the median counts.
A further row has the turns while all 500 replies are followed with `stream()` in the same loop.
On two cores the host shares a core with the server.
A piece takes about 0.12 ms of CPU time, nearly all of it in the vendor's SDK and in HTTP: 5,000
pieces a second leave 0.4 of a core to the host.
Floors: 99 of 100 times the loop is at most 50 ms late; a turn takes at most 2 × as long.
"""

import asyncio
import os
import tempfile
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import median, quantiles

from bench.api import talker
from bench.live_text import KEY, WARM, agent
from bench.model_server import model_server
from bench.table import Row, plain
from cueline import Runtime, open_runtime
from cueline.runtime.loop import run

STREAMS = 500
PIECES = 900
"""Of each reply: ninety seconds, in which all is measured."""
TURNS = 5000
SECONDS = 3.0
LOOK_SECONDS = 0.01
SETTLE_SECONDS = 5.0
"""From the start of the calls until all have connected."""
ROUNDS = 3


@dataclass(frozen=True, slots=True)
class Share:
    """The times of a session and of the event loop in a host."""

    turn: float
    """The time of a turn, in ms."""
    late: float
    """The 99th percentile of the time by which the loop wakes a task too late, in ms."""


async def lateness(late: list[float]) -> None:
    """Add to *late*, without end, the time in ms by which the loop wakes this task too late."""
    while True:
        due = time.perf_counter() + LOOK_SECONDS
        await asyncio.sleep(LOOK_SECONDS)
        late.append(1000 * (time.perf_counter() - due))


async def turns(runtime: Runtime, folder: Path) -> Share:
    """Run another session for some seconds, and return its times."""
    session = await runtime.start(talker(folder, TURNS), "Begin.")
    store, stream = runtime.log.store, session.stream_name
    async for recorded in store.follow(0, {"session"}):
        if recorded.stream == stream and recorded.type == "ToolReturned":
            break
    late: list[float] = []
    looking = asyncio.create_task(lateness(late))
    version, began = (await store.head(stream)).version, time.perf_counter()
    await asyncio.sleep(SECONDS)
    until, took = (await store.head(stream)).version, time.perf_counter() - began
    looking.cancel()
    await session.stop()
    types = [event.type async for event in store.read(stream, version, until)]
    return Share(1000 * took / max(1, types.count("ToolReturned")), quantiles(late, n=100)[98])


async def stream(runtime: Runtime, url: str) -> None:
    """Start the sessions that stream, and wait until all their model calls are in flight."""
    who, after = agent(url, f"{PIECES}x100"), await runtime.log.store.last_position()
    starts = (runtime.start(who, "Begin.", id=name_of(number)) for number in range(STREAMS))
    await asyncio.gather(*starts)
    missing = STREAMS
    async for recorded in runtime.log.store.follow(after, {"session"}):
        missing -= recorded.type == "ModelStarted"
        if not missing:
            break
    await asyncio.sleep(SETTLE_SECONDS)


def name_of(number: int) -> str:
    """Return the name of a session that streams."""
    return f"streams.{number}"


async def watch(runtime: Runtime, number: int) -> None:
    """Follow one session that streams."""
    async for _ in runtime.session(name_of(number)).stream():
        pass


@asynccontextmanager
async def watched(runtime: Runtime) -> AsyncIterator[None]:
    """Follow all streaming sessions in this process."""
    watching = [asyncio.create_task(watch(runtime, number)) for number in range(STREAMS)]
    await asyncio.sleep(SETTLE_SECONDS)
    yield
    for task in watching:
        task.cancel()
    await asyncio.gather(*watching, return_exceptions=True)


async def one_round(folder: Path, url: str) -> tuple[Share, Share, Share]:
    """Return the times of a session alone, beside all streams, and while these are followed."""
    async with open_runtime(folder / "log.db", on="inline") as runtime:
        await (await runtime.start(talker(folder, WARM), "Begin.")).result()
        alone = await turns(runtime, folder)
        await stream(runtime, url)
        unwatched = await turns(runtime, folder)
        async with watched(runtime):
            beside = await turns(runtime, folder)
        types = [event.type async for event in runtime.log.store.read_all(0, {"session"})]
        assert types.count("SessionCompleted") == 1, "a reply ended before all was measured"
        await asyncio.gather(*(runtime.stop(name_of(number)) for number in range(STREAMS)))
    return alone, unwatched, beside


def measure() -> list[Row]:
    """Return the rows of this bench."""
    os.environ[KEY] = "bench"
    rounds = []
    with model_server() as url:
        for _ in range(ROUNDS):
            with tempfile.TemporaryDirectory(dir=".") as folder:
                rounds.append(run(one_round(Path(folder), url)))
    alone = median(each[0].turn for each in rounds)
    return [
        Row(
            name=f"the loop of a host with {STREAMS} streams: late, p99",
            value=median(each[1].late for each in rounds),
            unit="ms",
            floor="≤ 50",
        ),
        Row(
            name="a turn of another session beside them",
            value=median(each[1].turn for each in rounds),
            unit="ms",
            floor="≤ 2 ×",
            ratio=median(each[1].turn / each[0].turn for each in rounds),
            to=f"without them ({alone:.3g} ms)",
        ),
        Row(
            name="likewise, all watched in the same process",
            value=median(each[2].turn for each in rounds),
            unit="ms",
            ratio=median(each[2].turn / each[0].turn for each in rounds),
            to="without them",
        ),
    ]


if __name__ == "__main__":
    print(plain(measure()))
