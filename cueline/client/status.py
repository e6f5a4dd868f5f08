"""What drives the sessions of a log, and where."""

from collections import Counter
from dataclasses import dataclass

from cueline.actors.presence import living, silent_seconds
from cueline.actors.session_owner import owners_of
from cueline.client.reading import Notice, print_notice, read_models
from cueline.projections.session import running
from cueline.up_record import UpRecord, find_up
from cueline.wiring import OpenLog


@dataclass(frozen=True, slots=True)
class UpRow:
    """The running `cueline up` of a log."""

    pid: int
    address: str
    """Of its Ray."""
    namespace: str
    version: str
    """Of its cueline."""


@dataclass(frozen=True, slots=True)
class ProcessRow:
    """One living process of a log."""

    role: str
    incarnation: str
    machine: str
    pid: int
    beat_seconds: float
    """So long ago it said that it lives."""
    sessions: int
    """So many running sessions it drives."""


@dataclass(frozen=True, slots=True)
class LogStatus:
    """What drives the sessions of a log, and where."""

    up: UpRow | None
    processes: tuple[ProcessRow, ...]
    driven: int
    undriven: int
    """Running sessions that nobody drives."""


async def status_of(log: OpenLog, *, notice: Notice = print_notice) -> LogStatus:
    """Return what drives the sessions of a log.

    Raises:
        LogUnavailableError: the log cannot be read.
        CorruptEventError: the log is damaged, so that sessions may be missing.
    """
    now = log.clock.now()
    present = await living(log.board, now)
    async with read_models(log, notice) as models:
        streams = running(models.db)
    if models.damage is not None:
        raise models.damage
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
    up = find_up(log.url)
    undriven = len(streams) - len(owners)
    return LogStatus(None if up is None else row_of(up), processes, len(owners), undriven)


def row_of(up: UpRecord) -> UpRow:
    """Return where a running `cueline up` is."""
    return UpRow(up.keeper.pid, up.address, up.namespace, up.version)
