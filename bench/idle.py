"""Measures the start and the idle costs of `cueline up`.

The log has 1,000 sessions whose model call takes an hour, and 100,000 sessions that wait for a
person. `cueline up` starts on this log. Once the model calls of all 1,000 sessions are in flight,
the bench measures for some seconds the CPU time of the dispatcher and of the host.
Then `list` and `pending` are timed as whole processes.
Floors: `up` is ready 10 s after a bare Ray would be; 3 % of a core for each of the two processes;
0.5 s for each command.
"""

import asyncio
import subprocess
import sys
import tempfile
import time
from datetime import UTC, datetime
from pathlib import Path
from statistics import median

import psutil

from bench.ray_start import bare, cueline
from bench.table import Row
from cueline.actors.inbox import ask_start
from cueline.agents.agent import Agent
from cueline.agents.preflight import agent_to_record
from cueline.config.environment import HERE
from cueline.events.agent import AgentSpec
from cueline.events.codes import Cause
from cueline.events.inbox import StartAsked
from cueline.events.journal import FactWrite
from cueline.events.session import SessionStarted, SessionWaiting
from cueline.events.store import NO_STREAM
from cueline.events.stream import sibling, stream_name
from cueline.providers.seal_key import seal_key
from cueline.runtime.loop import run
from cueline.runtime.open_log import OpenLog, open_log
from cueline.runtime.seal import seal_log

ACTIVE = 1_000
WAITING = 100_000
AT_ONCE = 2_000
SECONDS = 10
COMMANDS = 3
SCRIPT = """
[[reply]]
delay_seconds = 3600
text = "At last."
"""


def slow(folder: Path) -> AgentSpec:
    """Return an agent whose model takes an hour."""
    script = folder / "script.toml"
    script.write_text(SCRIPT)
    return agent_to_record(Agent(name="bench", provider="scripted", model=str(script)))


async def wait_for_person(log: OpenLog, agent: AgentSpec, number: int) -> None:
    """Record a session that waits for an operator."""
    stream = stream_name("session", f"w{number}")
    asked = StartAsked(agent=agent, goal="Begin.", asked_at=datetime.now(UTC))
    began = SessionStarted(agent=agent, goal="Begin.", open=False, attached=False, epoch=1)
    waits = SessionWaiting(kind="operator", cause=Cause(code="asked"))
    writes = [
        FactWrite(stream=sibling(stream, "inbox"), steps=[[asked]], expected_version=NO_STREAM),
        FactWrite(stream=stream, steps=[[began, waits]], expected_version=NO_STREAM),
    ]
    await log.journal().append(writes, key="start")


async def fill(folder: Path) -> None:
    """Create the log and its read models, and seal it: `up` seals once what is not sealed."""
    agent = slow(folder)
    async with open_log(folder / "log.db") as log:
        for first in range(0, WAITING, AT_ONCE):
            numbers = range(first, first + AT_ONCE)
            await asyncio.gather(*(wait_for_person(log, agent, number) for number in numbers))
        asked = StartAsked(agent=agent, goal="Begin.", asked_at=datetime.now(UTC))
        for number in range(ACTIVE):
            await ask_start(log.journal(), f"a{number}", asked)
        views = log.backend.open_views()
        await views.catch_up(log.store)
        views.close()
        await seal_log(log, seal_key(HERE), folder / "seals")


async def all_with_their_model(folder: Path) -> dict[str, int]:
    """Wait until each running session has a model call in flight; return the pids by role."""
    async with open_log(folder / "log.db") as log:
        missing = {stream_name("session", f"a{number}") for number in range(ACTIVE)}
        async for event in log.store.follow(0, {"session"}):
            if event.type == "ModelStarted":
                missing.discard(event.stream)
            if not missing:
                break
        return {each.role: each.pid for each in await log.board.all()}


def share(process: psutil.Process) -> float:
    """Return the CPU seconds that *process* has taken."""
    times = process.cpu_times()
    return float(times.user + times.system)


def shares(pids: dict[str, int]) -> dict[str, float]:
    """Return the CPU time of dispatcher and host, in percent of a core."""
    processes = {role: psutil.Process(pids[role]) for role in ("dispatcher", "host")}
    before, began = {role: share(each) for role, each in processes.items()}, time.monotonic()
    time.sleep(SECONDS)
    took = time.monotonic() - began
    return {r: (share(each) - before[r]) / took * 100 for r, each in processes.items()}


def command_seconds(folder: Path, name: str) -> float:
    """Return the seconds of a command as a whole process."""
    words = [sys.executable, "-m", "cueline.cli", name, "--log", str(folder / "log.db")]
    took = []
    for _ in range(COMMANDS):
        began = time.perf_counter()
        subprocess.run(words, check=True, stdout=subprocess.DEVNULL)
        took.append(time.perf_counter() - began)
    return median(took)


def measure() -> list[Row]:
    """Return the rows of this bench."""
    with tempfile.TemporaryDirectory(prefix="cl-", dir="/tmp") as name:
        folder = Path(name)
        run(fill(folder))
        init = bare()
        began = time.perf_counter()
        cueline(folder, "up", "--detach")
        ready = time.perf_counter() - began
        try:
            taken = shares(run(all_with_their_model(folder)))
            listed = {each: command_seconds(folder, each) for each in ("list", "pending")}
        finally:
            cueline(folder, "down")
    of = f"{ACTIVE:,} active and {WAITING:,} waiting sessions"
    return [
        Row(f"`up` on {of}: ready, less a bare `ray.init()`", ready - init, "s", "≤ 10"),
        Row("idle `up`: the dispatcher", taken["dispatcher"], "% of a core", "≤ 3"),
        Row("idle `up`: the host", taken["host"], "% of a core", "≤ 3"),
        *(Row(f"`{each}` on that log", took, "s", "≤ 0.5") for each, took in listed.items()),
    ]
