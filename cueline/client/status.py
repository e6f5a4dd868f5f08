"""Returns the processes that drive the sessions of a log."""

from collections import Counter
from dataclasses import dataclass

from cueline.actors.presence import living, silent_seconds
from cueline.actors.session_owner import owners_of
from cueline.client.reading import Notice, print_notice, read_models
from cueline.errors import CorruptEventError
from cueline.projections.session import running
from cueline.runtime.open_log import OpenLog
from cueline.runtime.up_record import UpRecord, find_up


@dataclass(frozen=True, slots=True)
class UpRow:
    """The running `cueline up` of a log."""

    pid: int | None
    """The pid of the process that keeps it; None: Ray keeps it."""
    address: str
    """The address of its Ray."""
    namespace: str
    version: str
    """The version of its cueline."""


@dataclass(frozen=True, slots=True)
class ProcessRow:
    """One living process of a log."""

    role: str
    incarnation: str
    machine: str
    pid: int
    beat_seconds: float
    """The time since its last heartbeat, in seconds."""
    sessions: int
    """The number of running sessions that it drives."""


@dataclass(frozen=True, slots=True)
class LogStatus:
    """The processes that drive the sessions of a log."""

    up: UpRow | None
    processes: tuple[ProcessRow, ...]
    driven: int
    undriven: int
    """The running sessions without a driver."""
    server: str | None = None
    """The server of the log, and the rights of this role there; None for a file."""
    damage: CorruptEventError | None = None
    """The unreadable event; later sessions are not counted."""


async def status_of(log: OpenLog, *, notice: Notice = print_notice) -> LogStatus:
    """Return the processes that drive the sessions of a log.

    Raises:
        LogUnavailableError: the log cannot be read.
    """
    now = log.clock.now()
    present = await living(log.board, now)
    async with read_models(log, notice) as models:
        streams, damage = running(models.db), models.damage
    owners = await owners_of(log.store, log.board, streams, now)
    drives = Counter(owner.incarnation for owner in owners.values())
    processes = tuple(
        ProcessRow(
            each.role,
            each.incarnation,
            each.machine,
            each.pid,
            silent_seconds(each, now),
            drives[each.incarnation],
        )
        for each in present
    )
    record = find_up(log.url)
    up = None if record is None else row_of(record)
    undriven = len(streams) - len(owners)
    return LogStatus(up, processes, len(owners), undriven, log.backend.describe(), damage)


def row_of(up: UpRecord) -> UpRow:
    """Return the address of a running `cueline up`."""
    pid = up.keeper.pid if up.kept_by == "process" else None
    return UpRow(pid, up.address, up.namespace, up.version)
