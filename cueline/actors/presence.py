"""Presence: which processes are alive, by their heartbeats and their machine's process table."""

import os
import socket
from collections.abc import Sequence
from contextlib import suppress
from datetime import datetime
from functools import cache
from pathlib import Path
from uuid import uuid4

from cueline.clock import Clock
from cueline.events.store import Presence, PresenceBoard, to_us

BEAT_SECONDS = 2.0
SILENCE_SECONDS = 10.0
"""The silence after which a process counts as dead."""
REMOVAL_SECONDS = 600.0
"""The default of `cluster.removal_seconds`, the silence after which a runner has ended."""


def machine_name() -> str:
    """Return the id of this machine: `CUELINE_MACHINE`, else its machine id."""
    named = os.environ.get("CUELINE_MACHINE")
    if named:
        return named
    try:
        return Path("/etc/machine-id").read_text().strip() or socket.gethostname()
    except OSError:
        return socket.gethostname()


def presence_of(role: str) -> Presence:
    """Return the presence of a new incarnation in this process."""
    pid = os.getpid()
    return Presence(
        incarnation=f"{role}-{uuid4().hex[:12]}",
        role=role,
        machine=machine_name(),
        boot_id=_boot_id(),
        pid=pid,
        process_started=_started(pid) or 0,
        pid_namespace=_pid_namespace(),
    )


async def beat_always(board: PresenceBoard, presence: Presence, clock: Clock) -> None:
    """Send heartbeats without end."""
    while True:
        # One missed heartbeat does no harm. Without further heartbeats, other hosts would take the
        # sessions of this process.
        with suppress(Exception):
            await board.beat(presence)
        await clock.sleep(BEAT_SECONDS)


def death_of(presence: Presence, now: datetime) -> str | None:
    """Return the evidence that a process is dead; None while it may live."""
    if (end := evidence_of_end(presence)) is not None:
        return end
    seconds = silent_seconds(presence, now)
    if seconds <= SILENCE_SECONDS:
        return None
    runs = "runs, but " if runs_here(presence) else ""
    return f"process {presence.pid} on {presence.machine} {runs}is silent for {seconds:.0f} s"


def silent_seconds(presence: Presence, now: datetime) -> float:
    """Return the time since the last heartbeat, in seconds."""
    return (to_us(now) - presence.beat_us) / 1_000_000


def deaf_seconds(removal_seconds: float) -> float:
    """Return the silence after which a runner, or a host without a dispatcher, ends itself.

    Other processes count it as ended only later, after *removal_seconds*.
    """
    return removal_seconds / 2


def evidence_of_end(presence: Presence) -> str | None:
    """Return this machine's evidence that the process has ended; silence is no evidence.

    A frozen process is silent and may continue, so its calls count as running.
    """
    if _is_here(presence) and not runs_here(presence):
        return f"process {presence.pid} on {presence.machine} has ended"
    return None


def runs_here(presence: Presence) -> bool:
    """Whether the process runs on this machine; it may be frozen or unable to write."""
    return _is_here(presence) and _started(presence.pid) == presence.process_started


def _is_here(presence: Presence) -> bool:
    here = (presence.boot_id, presence.pid_namespace) == (_boot_id(), _pid_namespace())
    return here and presence.boot_id != ""


async def living(board: PresenceBoard, now: datetime) -> list[Presence]:
    """Return the processes that may live."""
    return [each for each in await board.all() if death_of(each, now) is None]


def find(all_present: Sequence[Presence], incarnation: str | None) -> Presence | None:
    """Return the presence of the process *incarnation*; None if it is missing."""
    return next((p for p in all_present if p.incarnation == incarnation), None)


@cache
def _boot_id() -> str:
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    except OSError:
        return ""


@cache
def _pid_namespace() -> str:
    try:
        return str(Path("/proc/self/ns/pid").readlink())
    except OSError:
        return ""


def _started(pid: int) -> int | None:
    """Return the kernel's start time of the process, in ticks; None without such a process."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return None
    fields = stat.rpartition(")")[2].split()
    state, started = fields[0], fields[19]
    return None if state in "ZX" else int(started)
