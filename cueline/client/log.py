"""Creates, upgrades, copies, backs up and restores logs."""

from collections.abc import Callable, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from time import monotonic
from typing import NamedTuple

from cueline.actors.presence import living
from cueline.client.open_read_models import read_models
from cueline.client.verify import AuditVerification, BadRow
from cueline.errors import ConfigError, LogFormatError, LogUnavailableError, RejectedError
from cueline.events.log_url import LogName, LogUrl
from cueline.files import rename_for_good
from cueline.runtime.open_log import open_log
from cueline.runtime.up_record import find_up
from cueline.stores.backend import backend_of
from cueline.stores.log_copy import CopyStep as CopyStep  # noqa: PLC0414 - what `progress` is told
from cueline.stores.log_copy import LogRows, copy_rows, finish_copy
from cueline.stores.waiting import take_turns


@dataclass(frozen=True, slots=True)
class Copied:
    """The result of a copy that was compared with its source."""

    source: str
    target: str
    events: int
    streams: int
    bad: tuple[BadRow, ...]
    """The damage, in the source and in the copy."""
    seconds: float


class FormerLog(NamedTuple):
    """The log that was in the place of a restored one."""

    path: Path
    """Where it is now."""
    same: bool
    """Whether the restored log is a backup of it; also if this cannot be read any more."""


def migrate_log(log: LogName, *, writers: Sequence[str] = (), readers: Sequence[str] = ()) -> bool:
    """See `LogBackend.migrate`."""
    return backend_of(log).migrate(writers, readers)


async def copy_log(
    source: LogName, target: LogName, *, progress: Callable[[CopyStep], None] = lambda _: None
) -> Copied:
    """Copy a log to *target*, which is created if it is missing, and check the copy.

    A copy that was stopped, or whose source has grown since, continues.

    Args:
        source: the URL or path of the log.
        target: the URL or path of the copy: without events, or with the first ones of the source.
        progress: called after each page of rows.

    Raises:
        ConfigError: both are the same log.
        RejectedError: a process works on one of the two.
        LogUnavailableError: one of the two cannot be used, the target has other content, or a
        process appended meanwhile; the message says what to do.
    """
    began = monotonic()
    names = str(LogUrl.of(source)), str(LogUrl.of(target))
    files = [{*backend_of(name).files()} for name in names]
    if names[0] == names[1] or files[0] & files[1]:
        raise ConfigError(names[1], "a log is copied to another; name two logs")
    with closing(backend_of(source).open_rows()) as rows:
        await _refuse_company(source)
        with suppress(LogUnavailableError):  # an unfinished copy cannot be opened
            if backend_of(target).exists():
                await _refuse_company(target)
        await _copy(rows, target, progress)
    return await _checked(source, target, began)


async def backup_log(
    source: LogName, target: LogName, *, progress: Callable[[CopyStep], None] = lambda _: None
) -> Copied:
    """Copy a log to a new file, and check the copy; other processes may append meanwhile.

    The copy has every event that was acknowledged before the call, and no half append. The file
    gets its name once it is checked. Content that was removed from the log is not in it.

    Raises:
        ConfigError: there is a file already, or *target* names no file.
        LogUnavailableError: one of the two cannot be used.
    """
    began, name = monotonic(), str(LogUrl.of(target))
    if not (files := backend_of(target).files()):
        raise ConfigError(name, "a backup is a new file; `cueline log copy` copies to a server")
    if backend_of(target).exists():
        raise ConfigError(name, "it exists, and a backup overwrites nothing; name a new file")
    path = files[-1]
    part = path.with_name(f"{path.name}.part")
    _remove(part)  # of a backup that was killed
    try:
        with closing(backend_of(source).open_rows()) as rows:
            await _copy(rows, part, progress, growing=True)
        copied = await _checked(source, part, began)
        rename_for_good(part, path)
    finally:
        _remove(part)
    return replace(copied, target=name)


async def restore_log(
    source: LogName,
    target: LogName,
    *,
    now: datetime,
    progress: Callable[[CopyStep], None] = lambda _: None,
) -> tuple[Copied, FormerLog | None]:
    """Put a copy of *source* in the place of the log *target*; return the former log, if any.

    Read models and snapshots notice by themselves that the log is another.

    Raises:
        ConfigError: both are the same log.
        RejectedError: a process works on the log: end it first; or it is on a server.
        LogUnavailableError: *source* cannot be read, or the files cannot be written.
    """
    began, url = monotonic(), str(LogUrl.of(target))
    if not (files := backend_of(target).files()):
        how = "copy the backup to a new log with `cueline log copy`"
        raise RejectedError(url, f"it has no file here; {how}")
    if {*files} & {*backend_of(source).files()}:
        raise ConfigError(url, "a log is restored from another; name two logs")
    path = files[-1]
    part, aside = (
        path.with_name(f"{path.name}-{end}")
        for end in ("restoring", f"until-{now:%Y%m%dT%H%M%S%f}")
    )
    with suppress(LogUnavailableError, LogFormatError):  # then it is restored for a reason
        if backend_of(target).exists():
            await _refuse_company(target)
    _remove(part)
    try:
        with closing(backend_of(source).open_rows()) as rows:
            await _copy(rows, part, progress, growing=True)
        copied = await _checked(source, part, began)
        there, ids = backend_of(target).exists(), {_id_of(target), _id_of(part)} - {None}
        # The log first: the next attempt moves a WAL too, so that none meets the restored log.
        for end in ("", "-wal", "-shm"):
            with suppress(FileNotFoundError):
                rename_for_good(path.with_name(path.name + end), Path(f"{aside}{end}"))
        rename_for_good(part, path)
    finally:
        _remove(part)
    return replace(copied, target=url), FormerLog(aside, len(ids) == 1) if there else None


async def _copy(
    rows: LogRows, target: LogName, progress: Callable[[CopyStep], None], *, growing: bool = False
) -> None:
    with closing(backend_of(target).open_rows(to_write=True)) as copy:
        for step in copy_rows(rows, copy, growing=growing):
            progress(step)
            await take_turns()  # Ctrl-C comes in here
        finish_copy(copy)


async def _checked(source: LogName, target: LogName, began: float) -> Copied:
    names = str(LogUrl.of(source)), str(LogUrl.of(target))
    async with open_log(target, must_exist=True, read_only=True) as log:
        checked = AuditVerification(log)
        await checked.run()
    seconds = monotonic() - began
    return Copied(*names, checked.events, checked.streams, tuple(checked.bad), seconds)


def _id_of(log: LogName) -> str | None:
    with suppress(LogUnavailableError, LogFormatError):
        found = backend_of(log).found()
        return found[1] or None if found else None
    return None


def _remove(path: Path) -> None:
    for end in ("", "-wal", "-shm", ".presence"):
        path.with_name(path.name + end).unlink(missing_ok=True)


async def scrub_log(log: LogName) -> None:
    """Overwrite what the files of a log, and of its read models, still have of emptied content.

    SQLite keeps it in free pages.

    Raises:
        RejectedError: a process works on the log: end it first; or the log has no file here.
        LogUnavailableError: the files cannot be written.
    """
    if not backend_of(log).files():
        raise RejectedError(str(LogUrl.of(log)), "it has no file here; a server has its `VACUUM`")
    await _refuse_company(log)
    async with open_log(log, must_exist=True) as opened, read_models(opened):
        pass  # the rows of emptied sessions go
    backend_of(log).scrub()


async def _refuse_company(name: LogName) -> None:
    """Refuse a log that other processes use.

    Raises:
        RejectedError: other processes use the log; end them first.
    """
    if (record := find_up(name)) is not None:
        reason = f"`cueline up` ({record.keeper_text}) runs on it; end it with `cueline down`"
        raise RejectedError(str(LogUrl.of(name)), reason)
    async with open_log(name, must_exist=True, read_only=True) as log:
        present = await living(log.board, log.clock.now())
    if present:
        first = present[0]
        who = f"process {first.pid} on {first.machine} ({first.role})"
        raise RejectedError(str(LogUrl.of(name)), f"{who} works on it; end it first")
