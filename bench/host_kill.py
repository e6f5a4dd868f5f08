"""How long 50 active sessions stand still when their host is killed.

One host drives all of them, each with a model that takes half a second and a
tool of which nothing is declared; then it gets SIGKILL, and so does the next, five times.
The clock runs until the last session has appended by its next host.
A duplicate is a call that the tool's own journal has twice.
Floors: 1 s for the median, 6 s for the slowest, and no duplicate.
The next host is ready, as a fleet keeps one so: without it, its process alone takes up to a second.
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
"""A host that lived for less is replaced after a rest, and has no host ready beside it."""
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
    """Return who works in *folder*."""
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
    """Ask for the sessions."""
    asked = StartAsked(agent=spec, goal="Go on.", asked_at=log.clock.now())
    return [await ask_start(log.journal(spec), f"s{n}", asked) for n in range(SESSIONS)]


@asynccontextmanager
async def driven(log: OpenLog, streams: list[str]) -> AsyncIterator[None]:
    """Drive *streams* on Ray."""
    async with on_ray(log, scope=streams, on_trouble=trouble) as place:
        await place.place(streams)
        yield


async def host_on(board: PresenceBoard, clock: Clock) -> int:
    """Return the process of the living host on *board*, once it has written itself there.

    A host drives sessions before its first beat arrives.
    """
    async with asyncio.timeout(PATIENCE_SECONDS):
        while True:
            for presence in await living(board, clock.now()):
                if presence.role == "host":
                    return presence.pid
            await clock.sleep(LOOK_SECONDS)


def trouble(stream: str, error: CuelineError) -> None:
    """Say what went wrong."""
    print(f"{stream}: {error}")


async def seen(events: AsyncIterator[RecordedEvent], kind: str, epoch: int) -> None:
    """Return once every session has appended, by an owner of that *epoch* or a later one."""
    missing = {f"session-default/s{n}" for n in range(SESSIONS)}
    async for event in events:
        if event.epoch >= epoch and (not kind or event.type == kind):
            missing.discard(event.stream)
        if not missing:
            return


async def killed(folder: Path) -> tuple[list[float], int]:
    """Return seconds until all go on after each kill, and how many calls ran twice."""
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
