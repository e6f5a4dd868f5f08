"""Measures the resources of sessions that wait for a person, and their delay after the answer.

A thousand sessions each request one call that a person has to allow; then all of them rest.
The bench counts the processes that were started, tasks, open files and connections, and bytes by
`tracemalloc`, beyond those before the sessions existed. Earlier, as many other sessions have come
to rest, so that caches and tables already have their size.
Each count is the least of a few looks, because a page of the log that is being read does not belong
to a session.
The bytes are measured for each half of the sessions, and the smaller value counts: a table of the
whole process, such as Python's table of interned texts, may double in the other half.
Then some sessions get an answer, one after the other, through their inboxes. The clock runs from
before the answer is put into the log until the session's next fact is in the log.
Floors: no process, no task, no file, 500 B a session; 100 ms for the slowest session.
"""

import asyncio
import gc
import os
import statistics
import tempfile
import time
import tracemalloc
from dataclasses import astuple, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import cast

import psutil

from bench.conversation import refuse
from bench.table import Row
from cueline.actors.inbox import ask_start, post
from cueline.agents.agent import Agent
from cueline.agents.preflight import agent_to_record
from cueline.events.agent import AgentSpec
from cueline.events.inbox import DecisionGiven, StartAsked
from cueline.events.session import ApprovalRequested
from cueline.events.stream import id_of, stream_name
from cueline.runtime.inline import Inline, inline
from cueline.runtime.loop import run
from cueline.runtime.open_log import OpenLog, open_log
from cueline.tools.tool import tool

SESSIONS = 1_000
WARM = 1_000
WOKEN = 25
LOOKS = 5
LOOK_SECONDS = 0.05
SCRIPT = """
[[reply]]
text = "May I?"
calls = [{ name = "guarded" }]

[[reply]]
text = "Then not."
"""


@tool(sensitive=True)
def guarded() -> str:
    """Return a text; a person has to allow the call."""
    return "done"


@dataclass(frozen=True, slots=True)
class Held:
    """The resources that a process holds."""

    processes: int
    tasks: int
    files: int
    bytes: int

    @classmethod
    async def at_rest(cls) -> "Held":
        """Count a few times, and return the least of each: the log may be read meanwhile."""
        looks = []
        for _ in range(LOOKS):
            await asyncio.sleep(LOOK_SECONDS)
            looks.append(cls.now())
        return cls(*map(min, *map(astuple, looks)))

    @classmethod
    def now(cls) -> "Held":
        """Return the current resources of this process."""
        gc.collect()
        files = len(os.listdir("/proc/self/fd"))  # noqa: PTH208 - names alone
        processes = len(psutil.Process().children(recursive=True))
        held, _ = tracemalloc.get_traced_memory()
        return cls(processes, len(asyncio.all_tasks()), files, held)


def asker(folder: Path) -> AgentSpec:
    """Return an agent that asks for one guarded call."""
    script = folder / "script.toml"
    script.write_text(SCRIPT)
    tools = [f"{Path(__file__).resolve()}:guarded"]
    return agent_to_record(Agent(name="bench", provider="scripted", model=str(script), tools=tools))


async def rest(log: OpenLog, here: Inline, agent: AgentSpec, streams: list[str]) -> None:
    """Start sessions, and return once all of them rest."""
    for stream in streams:
        asked = StartAsked(agent=agent, goal="Begin.", asked_at=datetime.now(UTC))
        await ask_start(log.journal(), id_of(stream), asked)
    await here.place(streams)
    for stream in streams:
        await here.host.settled(stream)


async def wake(log: OpenLog, stream: str) -> float:
    """Answer the question of the session, and return the seconds until its next fact."""
    facts = [fact async for _, fact in log.journal().read(stream)]
    asked = cast("ApprovalRequested", next(f for f in facts if f.type == "ApprovalRequested"))
    answer = DecisionGiven(approval=asked.approval, digest=asked.digest, verdict="deny", by="bench")
    position = await log.store.last_position()
    began = time.perf_counter()
    await post(log.journal(), stream, answer)
    async for event in log.store.follow(position, {"session"}):
        if event.stream == stream:
            return time.perf_counter() - began
    raise AssertionError("following never ends by itself")


async def weighed(sessions: int, woken: int, warm: int = WARM) -> tuple[list[Held], list[float]]:
    """Return the resources before any, half and all sessions wait, and the wake-up times."""
    with tempfile.TemporaryDirectory(dir=".") as name:
        folder = Path(name)
        agent = asker(folder)
        async with (
            open_log(folder / "log.db") as log,
            inline(log, scope=None, on_trouble=refuse) as here,
        ):
            tracemalloc.start()
            await rest(log, here, agent, [stream_name("session", f"warm.{n}") for n in range(warm)])
            streams = [stream_name("session", f"s.{n}") for n in range(sessions)]
            held = [await Held.at_rest()]
            for half in (streams[: sessions // 2], streams[sessions // 2 :]):
                await rest(log, here, agent, half)
                held.append(await Held.at_rest())
            tracemalloc.stop()
            seconds = [await wake(log, stream) for stream in streams[:: sessions // woken]]
            for stream in streams:
                await here.host.settled(stream)
    return held, seconds


def measure() -> list[Row]:
    """Return the rows of this bench."""
    (before, half, after), seconds = run(weighed(SESSIONS, WOKEN))
    # A table of the whole process, such as Python's of interned texts, doubles in one of them.
    each = min(half.bytes - before.bytes, after.bytes - half.bytes) / (SESSIONS // 2)
    return [
        Row(
            name=f"processes of {SESSIONS:,} waiting sessions",
            value=max(0, after.processes - before.processes),
            unit="",
            floor="≤ 0",
        ),
        Row(
            name="their tasks",
            value=max(0, after.tasks - before.tasks),
            unit="",
            floor="≤ 0",
        ),
        Row(
            name="their open files and connections",
            value=max(0, after.files - before.files),
            unit="",
            floor="≤ 0",
        ),
        Row(name="memory of each", value=max(0.0, each), unit="B", floor="≤ 500"),
        Row(
            name="from an answer to the next fact, the slowest",
            value=max(seconds) * 1e3,
            unit="ms",
            floor="≤ 100",
        ),
        Row(name="likewise, the median", value=statistics.median(seconds) * 1e3, unit="ms"),
    ]
