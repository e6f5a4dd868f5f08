"""Measures the rate of calls on one and on four runners, and the cost of a call by a runner.

`cueline up` runs with one runner, and then with four, each with few slots. More sessions than there
are slots call a tool that sleeps, turn after turn. Once all runners are present, the bench
counts for some seconds the calls that returned.
Then a single session calls a trivial tool, turn after turn. The clock runs from the record of the
call's start to the record of its outcome, and the median counts. Inline, the call is the bare
function in the same loop, so the difference is the way to the runner's process and back.
Floor: four runners return 0.9 × four times the calls of one runner. The cost of a call through a
runner has no floor.
"""

import asyncio
import os
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Literal

from bench.api import talker
from bench.on_ray import sqlite_log, up
from bench.table import Row, plain
from cueline import Agent, Runtime, open_runtime, tool
from cueline.events.agent import Limits
from cueline.events.session import ToolReturned, ToolStarted
from cueline.events.store import PresenceBoard
from cueline.runtime.loop import run

SLOTS = 8
SLEEP = 0.5
SESSIONS = 64
SECONDS = 10.0
TURNS = 1000
MANY = 4
CALLS = 300
NAP = """
[[reply]]
text = "On."
calls = [{ name = "nap" }]
"""


@tool(read_only=True)
async def nap() -> str:
    """Sleep for a fixed time."""
    await asyncio.sleep(SLEEP)
    return "slept"


def sleeper(folder: Path) -> Agent:
    """Return an agent that calls the sleeping tool without end."""
    script = folder / "sleeps.toml"
    script.write_text(NAP * TURNS)
    here = f"{Path(__file__).resolve()}:nap"
    limits = Limits(max_turns=TURNS)
    return Agent(name="bench", provider="scripted", model=str(script), tools=[here], limits=limits)


async def present(board: PresenceBoard) -> int:
    """Return the number of runners on *board*."""
    return sum(each.role == "runner" for each in await board.all())


async def returned_a_second(log: str, folder: Path, runners: int) -> float:
    """Return the calls that return in a second, once *runners* runners are present."""
    agent = sleeper(folder)
    async with open_runtime(log) as runtime:
        await asyncio.gather(*(runtime.start(agent, "Begin.") for _ in range(SESSIONS)))
        while await present(runtime.log.board) < runners:
            await runtime.log.clock.sleep(SLEEP)
        await asyncio.sleep(4 * SLEEP)
        after, began = await runtime.log.store.last_position(), time.perf_counter()
        await asyncio.sleep(SECONDS)
        until, took = await runtime.log.store.last_position(), time.perf_counter() - began
        events = runtime.log.store.read_all(after, {"session"}, until - after)
        types = [event.type async for event in events if event.position <= until]
    return types.count("ToolReturned") / took


def scaled(runners: int) -> float:
    """Return the calls a second of *runners* runners."""
    with tempfile.TemporaryDirectory(dir=".") as name:
        folder = Path(name)
        log = sqlite_log(folder)
        with up(log, "--runners", str(runners)):
            return run(returned_a_second(log, folder, runners))


async def calls(runtime: Runtime, agent: Agent) -> float:
    """Return the time in ms from the record of a call's start to the record of its outcome."""
    session = await runtime.start(agent, "Begin.")
    assert (await session.result()).status == "completed"
    took, began = [], 0
    async for recorded, event in runtime.log.journal().read(session.stream_name):
        if isinstance(event, ToolStarted):
            began = recorded.recorded_us
        elif isinstance(event, ToolReturned):
            took.append((recorded.recorded_us - began) / 1000)
    return median(took)


def way(
    on: Literal["inline", "up"], agent_in: Callable[[Path, int], Agent] = talker, count: int = CALLS
) -> float:
    """Return the time of a call of the agent on this place, in ms."""

    async def measured() -> float:
        async with open_runtime(log, on="inline" if on == "inline" else "ray") as runtime:
            return await calls(runtime, agent_in(folder, count))

    with tempfile.TemporaryDirectory(dir=".") as name:
        folder = Path(name)
        log = sqlite_log(folder)
        if on == "inline":
            return run(measured())
        with up(log):
            return run(measured())


def measure() -> list[Row]:
    """Return the rows of this bench."""
    before, os.environ["CUELINE_RUNNER_SLOTS"] = os.environ.get("CUELINE_RUNNER_SLOTS"), str(SLOTS)
    try:
        one, many = scaled(1), scaled(MANY)
    finally:
        del os.environ["CUELINE_RUNNER_SLOTS"]
        if before is not None:
            os.environ["CUELINE_RUNNER_SLOTS"] = before
    inline, there = way("inline"), way("up")
    return [
        Row(
            name=f"calls that sleep on {MANY} runners",
            value=many,
            unit="calls/s",
            floor="≥ 0.9 ×",
            ratio=many / (MANY * one),
            to=f"{MANY} × one runner ({one:.3g}/s)",
        ),
        Row(
            name="a call through a runner on Ray, from its start to its outcome",
            value=there,
            unit="ms",
            ratio=there / inline,
            to=f"the bare function in the loop ({inline:.3g} ms)",
        ),
    ]


if __name__ == "__main__":
    print(plain(measure()))
