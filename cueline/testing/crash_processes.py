"""Kills real processes of an agent by SIGKILL, each at an event or after an effect."""

import os
import subprocess
import sys
from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime
from math import inf
from pathlib import Path
from typing import NamedTuple

from cueline.events.agent import Declared
from cueline.events.session import ToolStarted
from cueline.runtime.open_log import open_log
from cueline.testing.clock import FakeClock
from cueline.testing.crash import Outside
from cueline.testing.crash_everywhere import CrashCase, check_whole, decide_all, last_event
from cueline.testing.crash_findings import Course
from cueline.testing.fakes import JournalingExecutor, TurnModel
from cueline.testing.wait import await_answer


class KillTime(NamedTuple):
    """When a process is killed."""

    version: float
    """As soon as the log has this version of the session."""
    changed: bool = False
    """Not before the effects have changed since."""


NEVER = KillTime(inf)


async def kill_processes(case: CrashCase, folder: Path, sample: int) -> None:
    """Run the session once as a whole, and then kill it at *sample* times."""
    whole, _ = await run_killed(case, folder / "whole.db", NEVER)
    check_whole(whole)
    for number, kill in enumerate(kill_times(whole, case.declared, sample), start=1):
        run = run_killed(case, folder / f"killed-{number}.db", kill)
        await case.check(run, whole, "by SIGKILL" + " after an effect" * kill.changed)


def kill_times(whole: Course, declared: Mapping[str, Declared], sample: int) -> list[KillTime]:
    """Return *sample* times; effects and the starts of calls come first: there most can be lost."""
    facts = enumerate(whole.facts, start=1)
    starts = [(version, fact) for version, fact in facts if isinstance(fact, ToolStarted)]
    effects = [KillTime(n, changed=True) for n, f in starts if declared[f.tool] != "read_only"]
    events = len(whole.facts) - 1
    spread = [KillTime(1 + place * events // sample) for place in range(sample)]
    times = [*effects, *(KillTime(version) for version, _ in starts), *spread]
    return list(dict.fromkeys(times))[:sample]


async def run_killed(case: CrashCase, log: Path, kill: KillTime) -> tuple[Course, str]:
    """Run the session in processes, and kill the first at *kill*."""
    case.reset()
    async with open_log(log) as opened:
        outside = Outside.new(TurnModel([]), JournalingExecutor({}))
        place = replace(outside, store=opened.store, clock=FakeClock(datetime.now(UTC)))
        stream = await place.start("crash", case.spec, case.goal)
        last = ""
        if kill != NEVER:
            await resume(case, place, stream, log, kill)
            last = await last_event(place, stream)
        await resume(case, place, stream, log)
        while await decide_all(place, stream, lambda _: "do_not_run"):
            await resume(case, place, stream, log)
        starts = Counter(f.effect for f in await place.facts(stream) if isinstance(f, ToolStarted))
        return await case.course(place, stream, starts), last


async def resume(
    case: CrashCase, place: Outside, stream: str, log: Path, kill: KillTime = NEVER
) -> None:
    """Let a process drive the session until it exits, or is killed at *kill*."""
    before = case.effects()
    with start(log) as process:

        async def is_over() -> bool | None:
            nonlocal before
            reached = (await place.store.head(stream)).version >= kill.version
            if reached and kill.changed:
                reached = case.effects() != before
            else:
                before = case.effects()
            return reached or process.poll() is not None or None

        try:
            await await_answer(is_over)
        finally:
            process.kill()


def start(log: Path) -> subprocess.Popen[bytes]:
    """Start a process that drives the session; its output is beside the log."""
    command = [sys.executable, "-m", "cueline", "resume", "crash", "--log", str(log)]
    # The workers import the modules of the test.
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    with log.with_suffix(".txt").open("ab") as output:
        return subprocess.Popen(  # noqa: S603 - our own command
            command, stdin=subprocess.DEVNULL, stdout=output, stderr=output, env=environment
        )
