"""Removes the content of ended sessions from a log: erases, archives and cleans up.

The rows of the events stay, with the hash of what was in them: chains, seals and versions go on.
A session and all below it, its forks included, go together, because they read each other's past.
"""

import asyncio
import os
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass, fields
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple
from uuid import uuid4

from cueline.client.archive_file import SUFFIX, ArchiveFile, archive_lines
from cueline.client.open_read_models import ReadModels, find_session, read_models
from cueline.client.remote import at_server
from cueline.errors import ConfigError, RejectedError, WrongExpectedVersionError
from cueline.events.journal import FactWrite
from cueline.events.retention import KeptUsage, SessionEmptied, retention_stream
from cueline.events.status import TERMINAL
from cueline.events.store import BlobCollector, from_us, to_us
from cueline.events.stream import shown, sibling, tenant_of
from cueline.files import make_folder
from cueline.projections.read_model import ask
from cueline.projections.usage import DayUsage

if TYPE_CHECKING:
    from cueline.client.client import Client
    from cueline.runtime.open_log import OpenLog

Cause = Literal["erased", "archived", "cleaned"]
_OWN: Final = ("session", "inbox")
"""The categories of the streams with the content of a session, besides its approvals.

The streams of its sandboxes have none, and the pool may still need them.
"""
_FAMILY: Final = """
WITH RECURSIVE family(stream, depth) AS (
    SELECT stream, 0 FROM sessions WHERE stream = ?
    UNION
    SELECT s.stream, depth + 1 FROM sessions s
    JOIN family f ON s.child_of = f.stream OR s.parent = f.stream
)
SELECT s.stream, s.version, status, paused, updated_us, emptied, archive
FROM (SELECT stream, max(depth) AS depth FROM family GROUP BY stream) f
JOIN sessions s ON s.stream = f.stream ORDER BY f.depth DESC, s.stream
"""
_OLD: Final = """
SELECT stream FROM sessions
WHERE updated_us < ? AND child_of IS NULL AND parent IS NULL AND emptied = ''
ORDER BY updated_us, stream
"""
_STARTED: Final = """
SELECT DISTINCT session FROM events WHERE type = 'StartAsked' AND actor = ? ORDER BY session
"""
_ABOUT: Final = """
SELECT agent, started_us, turns, tool_calls, child_of, root FROM sessions WHERE stream = ?
"""
_APPROVALS: Final = "SELECT stream FROM approvals WHERE session = ?"


@dataclass(frozen=True, slots=True)
class Emptied:
    """One session whose content was removed, or would be."""

    session: str
    events: int
    """The number of its emptied events; 0: its archive was to be deleted."""
    archive: str = ""
    """The file that has the content: a new one, or one that is not on this machine."""


@dataclass(frozen=True, slots=True)
class EmptyReceipt:
    """The sessions that were emptied, or would be; those below a session come first."""

    sessions: tuple[Emptied, ...]
    kept: tuple[str, ...] = ()
    """The old sessions that stay because one of their tree is not over."""
    blobs: int = 0
    """The number of long values that were removed because no event of the log names them."""


class _Member(NamedTuple):
    """One session of a family, as the read models have it."""

    stream: str
    version: int
    status: str
    paused: bool
    updated_us: int
    emptied: str
    archive: str

    def is_over(self, *, paused: bool) -> bool:
        return self.status in TERMINAL or (paused and bool(self.paused))


@at_server
async def erase(
    client: "Client", sessions: Sequence[str] = (), *, user: str | None = None, reason: str = ""
) -> EmptyReceipt:
    """Remove the content of *sessions*, or of all that *user* started, and of all below them.

    Archives of them that this machine can reach are deleted. Names of people stay where they are
    the actor of an event.

    Args:
        client: the open log.
        sessions: the ids of ended sessions.
        user: the person whose sessions are removed.
        reason: why; it is recorded, and should hold no personal data.

    Raises:
        RejectedError: one of them is not over, and nothing was removed: stop it first. Or it went
        on meanwhile: try again, those before it are done.
        UnknownSessionError: there is no such session.
        ForbiddenError: it needs the scope `admin`.
    """
    client.log.check_may("admin")
    named = [await find_session(client.log, each, client.session_ids) for each in sessions]
    async with read_models(client.log, client.notice) as models:
        _check_undamaged(models)
        if user is not None:
            named += [s for (s,) in ask(models.db, "events", _STARTED, [f"user:{user}"])]
        families = [_family(models, each) for each in named]
        for family in families:
            _check_over(family)
        removal = _Removal(client.log, models, "erased", reason)
        emptied = [await removal.empty(each) for each in _unique(families)]
    done = tuple(each for each in emptied if each is not None)
    return EmptyReceipt(done, blobs=await _collect(client.log))


async def clean_up(
    client: "Client",
    before: datetime,
    *,
    archive: Path | None,
    paused: bool = False,
    dry_run: bool = False,
) -> EmptyReceipt:
    """Remove the content of sessions that ended before a time, first into files in *archive*.

    Args:
        client: the open log.
        before: sessions that changed later stay, with all of their tree.
        archive: the folder of the archives; None: the content is gone.
        paused: also sessions that wait for a person.
        dry_run: only return what would be removed.

    Raises:
        ConfigError: the archive cannot be written, or reads back otherwise; what it has not is
        still in the log.
        RejectedError: the log is behind a server.
        ForbiddenError: it needs the scope `admin`.
    """
    if client.log.server is not None:
        why = "it has to run where the log is; `cueline erase` removes named sessions from here"
        raise RejectedError(str(client.log.url), why)
    client.log.check_may("admin")
    emptied: list[Emptied] = []
    kept: list[str] = []
    cause: Cause = "cleaned" if archive is None else "archived"
    async with read_models(client.log, client.notice) as models:
        _check_undamaged(models)
        removal = _Removal(client.log, models, cause, folder=archive)
        for (root,) in ask(models.db, "sessions", _OLD, [to_us(before)]):
            family = _family(models, root)
            old = all(each.updated_us < to_us(before) for each in family)
            if not old or not all(each.is_over(paused=paused) for each in family):
                kept.append(shown(root))
                continue
            for each in family:
                if dry_run:
                    streams = await _streams(client.log, models, each.stream)
                    emptied.append(Emptied(shown(each.stream), sum(streams.values())))
                    continue
                done = await removal.empty(each)
                emptied += [] if done is None else [done]
    blobs = 0 if dry_run else await _collect(client.log)
    return EmptyReceipt(tuple(emptied), tuple(kept), blobs)


async def _collect(log: "OpenLog") -> int:
    """Remove long values that no event names, as after a crash before the event was appended."""
    store = log.store
    return await store.collect_blobs(log.clock.now()) if isinstance(store, BlobCollector) else 0


def _check_undamaged(models: ReadModels) -> None:
    if models.damage is not None:
        raise models.damage


def _family(models: ReadModels, stream: str) -> list[_Member]:
    """Return a session and all below it, the lowest first."""
    return list(map(_Member._make, ask(models.db, "sessions", _FAMILY, [stream])))


def _unique(families: Sequence[Sequence[_Member]]) -> list[_Member]:
    return list({each.stream: each for family in families for each in family}.values())


def _check_over(family: Sequence[_Member]) -> None:
    for each in family:
        if not each.is_over(paused=False):
            name = shown(each.stream)
            raise RejectedError(name, f"it is {each.status}; `cueline stop {name}` ends it first")


async def _streams(log: "OpenLog", models: ReadModels, session: str) -> dict[str, int]:
    """Return the streams with the content of a session, each with its last version."""
    approvals = [name for (name,) in ask(models.db, "approvals", _APPROVALS, [session])]
    heads = await log.store.heads([*(sibling(session, each) for each in _OWN), *approvals])
    return {stream: head.version for stream, head in heads.items() if head.version}


@dataclass(frozen=True, slots=True)
class _Removal:
    """Empties sessions for one cause; their content goes to *folder* first, if there is one."""

    log: "OpenLog"
    models: ReadModels
    cause: Cause
    reason: str = ""
    folder: Path | None = None

    async def empty(self, member: _Member) -> Emptied | None:
        """Empty the streams of one session in one append; None if an earlier one did that."""
        stream = member.stream
        if member.emptied:
            return await self._erase_archive(member)
        # No host goes on with it from here: its appends are refused.
        head = await self.log.store.head(stream)
        await self.log.store.acquire(stream, uuid4().hex, head.epoch)
        if (await self.log.store.head(stream)).version != member.version:
            raise RejectedError(shown(stream), "it went on meanwhile; try again")
        streams = await _streams(self.log, self.models, stream)
        file, digest = await self._archive(stream, streams) if self.folder else ("", "")
        empties = [(each, number) async for each, number in _full(self.log, streams)]
        await self._append(member, empties, streams=streams, archive=file, archive_hash=digest)
        return Emptied(shown(stream), len(empties), file)

    async def _erase_archive(self, member: _Member) -> Emptied | None:
        """Delete the archive of an emptied session, if it is on this machine."""
        if self.cause != "erased" or not member.archive:
            return None
        try:
            await asyncio.to_thread(os.unlink, member.archive)
        except FileNotFoundError:
            return Emptied(shown(member.stream), 0, member.archive)
        await self._append(member, [], streams={})
        return Emptied(shown(member.stream), 0)

    async def _append(self, member: _Member, empties: list[tuple[str, int]], **more: Any) -> None:
        fact = SessionEmptied(
            session=member.stream,
            cause=self.cause,
            reason=self.reason,
            # Nobody can continue it any more.
            status=member.status if member.status in TERMINAL else "stopped",
            **_kept(self.models, member.stream),
            **more,
        )
        stream, actor = retention_stream(tenant_of(member.stream)), f"user:{self.log.user}"
        while True:
            version = (await self.log.store.head(stream)).version
            write = FactWrite(stream, [[fact]], version, actor=actor, empties=empties)
            try:
                await self.log.journal().append([write], key=uuid4().hex)
            except WrongExpectedVersionError:
                continue  # another process has emptied a session
            return

    async def _archive(self, session: str, streams: Mapping[str, int]) -> tuple[str, str]:
        """Write the content of a session to a file, and read it back; return file and sha256.

        Raises:
            ConfigError: the file cannot be written, or does not read back.
        """
        assert self.folder is not None, "the caller has looked"
        path = self.folder / f"{shown(session).replace('/', '-')}{SUFFIX}"
        try:
            make_folder(self.folder)
            with ArchiveFile(path) as file:
                async for line in archive_lines(self.log.journal(), streams):
                    file.add(line)
                return str(path.absolute()), file.finish()
        except OSError as error:
            raise ConfigError(str(path), f"the archive cannot be written: {error}") from error


async def _full(log: "OpenLog", streams: Mapping[str, int]) -> AsyncIterator[tuple[str, int]]:
    """Yield the events of *streams* that have content; those of a fork's parent are not its own."""
    for stream, until in streams.items():
        async for event in log.store.read(stream, until=until):
            if event.stream == stream and event.payload is not None:
                yield stream, event.version


def _kept(models: ReadModels, stream: str) -> dict[str, Any]:
    """Return what stays known of a session: no text, but what it cost."""
    ((agent, started_us, turns, tool_calls, parent, root),) = ask(
        models.db, "sessions", _ABOUT, [stream]
    )
    names = [each.name for each in fields(DayUsage) if each.name != "stream"]
    sql = f"SELECT {', '.join(names)} FROM usage WHERE stream = ? ORDER BY day, provider, model"  # noqa: S608 - our own names
    rows = ask(models.db, "usage", sql, [stream])
    return {
        "agent": agent,
        "started_at": None if started_us is None else from_us(started_us),
        "turns": turns,
        "tool_calls": tool_calls,
        "parent": parent or "",
        "root": root,
        "usage": tuple(KeptUsage(**dict(zip(names, row, strict=True))) for row in rows),
    }
