"""Measures a session that comes back to its sandbox, and the fork of a large workspace.

A session asks before each of its commands. Once its sandbox is stopped, the answer is given: the
time is from the answer in the log to the start of the call, with a local sandbox, whose own start
takes no time. The fork is of a workspace of 10,000 files, on an overlay, with its first command.
Floor: 1 s for each.
"""

import asyncio
import os
import tempfile
import time
from pathlib import Path
from statistics import median
from unittest.mock import patch

from bench.table import Row
from cueline import Agent, open_runtime
from cueline.actors.sandbox_port import NAME_LABEL
from cueline.events.agent import Limits, Policy
from cueline.events.sandbox import SandboxSpec
from cueline.events.session import MessageReceived, ToolStarted
from cueline.isolation.ladder import overlays
from cueline.sandboxes.local import LocalBackend
from cueline.testing.wait import await_until

ROUNDS = 10
FILES = 100
ASKS = """
[[reply]]
calls = [{ name = "run_command", arguments = { command = "true" } }]
"""


def asker(folder: Path) -> Agent:
    """Return an agent that asks before each of its commands."""
    script = folder / "commands.toml"
    script.write_text(ASKS * ROUNDS + '[[reply]]\ntext = "Done."\n')
    place = folder / "workspace"
    place.mkdir()
    return Agent(
        name="bench",
        provider="scripted",
        model=str(script),
        tools=["run_command"],
        workspace=place,
        sandbox=SandboxSpec(backend="local"),
        limits=Limits(max_turns=ROUNDS + 1),
        policy=Policy(approval=("sensitive",)),
    )


async def wakes(folder: Path) -> list[float]:
    """Return the seconds from each answer to the start of its call."""
    backend, waited = LocalBackend(), []
    async with open_runtime(str(folder / "log.db"), on="inline") as runtime:
        session = await runtime.start(asker(folder), "Go.")
        for _ in range(ROUNDS):
            await session.result()
            await await_until(
                lambda: not [each for each in backend.find({}) if each.state == "started"]
            )
            (asked,) = await runtime.pending()
            await session.approve(asked.id)
        await session.result()
        answered = None
        async for recorded, fact in runtime.log.journal().read(f"session-default/{session.id}"):
            if isinstance(fact, MessageReceived):
                answered = fact.recorded_at
            elif isinstance(fact, ToolStarted) and answered is not None:
                waited.append((recorded.recorded_at - answered).total_seconds())
    return waited[1:]  # the first one creates the sandbox


def forked(folder: Path) -> float:
    """Return the seconds of a fork with 10,000 files, until its first command has ended."""
    work = folder / "large"
    for number in range(FILES):
        (work / str(number)).mkdir(parents=True)
        for name in range(FILES):
            (work / str(number) / f"{name}.txt").write_text("text\n")
    backend = LocalBackend()
    spec = SandboxSpec(backend="local", workspace=str(work))
    place = backend.create(spec, {NAME_LABEL: "sandbox-default/a.1"}, {})
    change = "for each in */1.txt; do echo more >> $each; done"
    backend.exec(place, ["/bin/sh", "-c", change], timeout_seconds=60)
    began = time.perf_counter()
    backend.snapshot(place, "1.0")
    other = backend.fork(place, "1.0", {NAME_LABEL: "sandbox-default/b.1"})
    seen = backend.exec(other, ["cat", "7/1.txt"], timeout_seconds=60)
    took = time.perf_counter() - began
    assert seen.output == b"text\nmore\n"
    for each in (place, other):
        backend.delete(each)
    return took


def measure() -> list[Row]:
    """Return the figures; empty where no overlay can be mounted."""
    if not overlays().program:
        return []
    with (
        tempfile.TemporaryDirectory() as folder,
        patch.dict(os.environ, {"XDG_STATE_HOME": f"{folder}/state"}),
    ):
        waited = asyncio.run(wakes(Path(folder)))
        took = forked(Path(folder))
    return [
        Row("from an answer to a call in a sandbox that was stopped", median(waited), "s", "≤ 1"),
        Row("fork a sandbox with 10,000 files", took, "s", "≤ 1"),
    ]
