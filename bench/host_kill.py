"""Measures how long 50 active sessions stand still after their host is killed.

One host drives all sessions. Each has a model that takes half a second, and a tool without
declarations. Then the host gets SIGKILL. The next host takes over the sessions, and is killed too;
there are five kills.
The clock runs until the next host of the last session has appended to it.
A duplicate is a call that is in the tool's journal twice.
Floors: 1 s for the median, 6 s for the slowest, and no duplicate.
The next host is already running, because a fleet keeps a spare host. Otherwise the start of its
process takes up to a second.
"""

import asyncio
import os
import signal
import tempfile
import time
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from statistics import median

from bench.table import Row
from cueline.actors.inbox import ask_start
from cueline.actors.presence import living
from cueline.agents.agent import Agent
from cueline.agents.preflight import agent_to_record
from cueline.clock import Clock
from cueline.errors import CuelineError
from cueline.events.agent import AgentSpec, Limits
from cueline.events.inbox import StartAsked
from cueline.events.store import PresenceBoard, RecordedEvent
from cueline.runtime.on_ray import on_ray
from cueline.runtime.open_log import OpenLog, open_log
from cueline.testing.wait import PATIENCE_SECONDS
from cueline.tools.tool import ToolContext, tool

SESSIONS = 50
TURNS = 1000
KILLS = 5
APART_SECONDS = 6.0
"""A host that lived for less time is replaced after a pause, and has no spare host."""
LOOK_SECONDS = 0.01
REPLY = """
[[reply]]
delay_seconds = 0.5
text = "On."
calls = [{ name = "note" }]
"""


@tool(needs_workspace=True)
async def note(context: ToolContext) -> str:
    """Note that this call has begun."""
    with (context.workspace / "journal").open("a") as journal:
        journal.write(f"{context.key}\n")
    return "noted"


def worker(folder: Path) -> AgentSpec:
    """Return the agent that works in *folder*."""
    script = folder / "script.toml"
    script.write_text(REPLY * TURNS)
    agent = Agent(
        name="bench",
        provider="scripted",
        model=str(script),
        tools=[f"{Path(__file__).resolve()}:note"],
        workspace=folder,
        limits=Limits(max_turns=TURNS),
    )
    return agent_to_record(agent)


async def ask(log: OpenLog, spec: AgentSpec) -> list[str]:
    """Request the sessions, and return their streams."""
    asked = StartAsked(agent=spec, goal="Go on.", asked_at=log.clock.now())
    return [await ask_start(log.journal(spec), f"s{n}", asked) for n in range(SESSIONS)]


@asynccontextmanager
async def driven(log: OpenLog, streams: list[str]) -> AsyncIterator[None]:
    """Drive *streams* on Ray."""
    async with on_ray(log, scope=streams, on_trouble=trouble) as place:
        await place.place(streams)
        yield


async def host_on(board: PresenceBoard, clock: Clock) -> int:
    """Return the pid of the living host on *board*, after its first heartbeat.

    A host drives sessions before its first heartbeat arrives.
    """
    async with asyncio.timeout(PATIENCE_SECONDS):
        while True:
            for presence in await living(board, clock.now()):
                if presence.role == "host":
                    return presence.pid
            await clock.sleep(LOOK_SECONDS)


def trouble(stream: str, error: CuelineError) -> None:
    """Print the error of a session."""
    print(f"{stream}: {error}")


async def seen(events: AsyncIterator[RecordedEvent], kind: str, epoch: int) -> None:
    """Wait until an owner with *epoch*, or a later epoch, has appended *kind* to every session."""
    missing = {f"session-default/s{n}" for n in range(SESSIONS)}
    async for event in events:
        if event.epoch >= epoch and (not kind or event.type == kind):
            missing.discard(event.stream)
        if not missing:
            return


async def killed(folder: Path) -> tuple[list[float], int]:
    """Return the seconds until all continue, for each kill, and the number of repeated calls."""
    took = []
    async with open_log(folder / "log.db") as log:
        streams = await ask(log, worker(folder))
        async with driven(log, streams):
            for epoch in range(1, KILLS + 1):
                await seen(log.store.follow(0, {"session"}), "ToolReturned", epoch)
                await log.clock.sleep(APART_SECONDS)
                host = await host_on(log.board, log.clock)
                position = await log.store.last_position()
                began = time.perf_counter()
                os.kill(host, signal.SIGKILL)
                await seen(log.store.follow(position, {"session"}), "", epoch + 1)
                took.append(time.perf_counter() - began)
            # Whatever was done twice shows in the turn after.
            await seen(log.store.follow(position, {"session"}), "ToolReturned", KILLS + 1)
    calls = Counter((folder / "journal").read_text().splitlines())
    return took, sum(count - 1 for count in calls.values())


def measure() -> list[Row]:
    """Return the rows of this bench."""
    with tempfile.TemporaryDirectory(prefix="cl-", dir="/tmp") as folder:
        took, twice = asyncio.run(killed(Path(folder)))
    of = f"SIGKILL of a host with {SESSIONS} active sessions"
    return [
        Row(f"{of}: all go on", median(took), "s", "≤ 1"),
        Row(f"likewise, the slowest of {KILLS}", max(took), "s", "≤ 6"),
        Row("calls that ran twice", twice, "calls", "≤ 0"),
    ]
