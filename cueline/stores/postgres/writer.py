"""Appends to a log in PostgreSQL: one task for all appends of a process.

Appends queue. All appends that queued during the last call go into the next call, which
is one transaction. A call of unknown outcome is repeated: the server finds each append by
its key, or by its owner's epoch and version.
"""

import asyncio
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from os import urandom
from typing import Any, TypeAlias

import psycopg
from msgspec import Struct
from msgspec.structs import astuple

from cueline.clock import Clock
from cueline.errors import (
    CorruptEventError,
    FencedError,
    KeyReusedError,
    LogUnavailableError,
    MissingBlobError,
    StoreError,
    UnknownOutcomeError,
    WrongExpectedVersionError,
)
from cueline.events.chain import SALT_BYTES, hash_payload, header_end
from cueline.events.store import NO_STREAM, NO_TIME, Appended, Write
from cueline.events.stream import category_of
from cueline.stores.postgres.address import Address
from cueline.stores.postgres.connections import (
    PATIENCE_SECONDS,
    Contents,
    Numbers,
    Retries,
    Row,
    Texts,
    connect,
    discard,
    is_broken,
)
from cueline.stores.postgres.sql import (
    DAMAGED_TIME,
    clock_us,
    escaped,
    is_locked,
    is_of_server,
    state_of,
    translated,
)
from cueline.stores.tables import LastEvent, StreamRow, head_fault


class Append(Struct, frozen=True):
    """See `EventStore.append`."""

    writes: Sequence[Write]
    key: str | None
    size: int


def arguments(appends: Sequence[Append]) -> list[object]:
    """Return the arguments after the first two, in order."""
    writes = [write for append in appends for write in append.writes]
    streams: dict[str, int] = {}
    place: Callable[[str], int] = lambda name: streams.setdefault(name, len(streams) + 1)  # noqa: E731
    forks = [(None, None) if w.after is None else (place(w.after[0]), w.after[1]) for w in writes]
    owners = [n for n, write in enumerate(writes, 1) for _ in write.events]
    drafts = [astuple(draft) for write in writes for draft in write.events]
    types, schemas, payloads, times, actors, *about, steps, named = zip(*drafts, strict=True)
    ends = map(header_end, [writes[n - 1].stream for n in owners], types, actors, *about)
    sizes = [sum(len(write.events) for write in append.writes) for append in appends]
    salts = [urandom(SALT_BYTES) for _ in drafts]
    blobs = [(n, blob) for n, blobs in enumerate(named, 1) for blob in blobs]
    empties = [(n, *event) for n, write in enumerate(writes, 1) for event in write.empties]
    firsts = [place(append.writes[0].stream) for append in appends]
    places = [place(write.stream) for write in writes]
    return [
        Texts(streams),
        Texts(map(category_of, streams)),
        _escaped(append.key for append in appends),
        Numbers(firsts),
        Numbers(len(append.writes) for append in appends),
        Numbers(places),
        Numbers(write.expected_version for write in writes),
        Numbers(write.epoch for write in writes),
        Numbers(parent for parent, _ in forks),
        Numbers(version for _, version in forks),
        Numbers(len(write.events) for write in writes),
        Numbers(owners),
        Numbers(seq for size in sizes for seq in range(size)),
        _escaped(types),
        Numbers(schemas),
        Contents(payloads),
        Numbers(times),
        _escaped(actors),
        *map(_escaped, about),
        Numbers(steps),
        Contents(ends),
        Contents(salts),
        Contents(map(hash_payload, salts, payloads)),
        Numbers(n for n, _ in blobs),
        Texts(blob for _, blob in blobs),
        Numbers(n for n, _, _ in empties),
        Texts(stream for _, stream, _ in empties),
        Numbers(version for _, _, version in empties),
    ]


def _escaped(texts: Iterable[str | None]) -> Texts:
    return Texts(None if text is None else escaped(text) for text in texts)


def result_of(append: Append, row: Row) -> Appended | StoreError:
    """Return the result of *append* from a row of the answer."""
    status, place, there, versions, position, recorded_us = row
    match status:
        case "appended":
            return Appended(tuple(versions), position, recorded_us)
        case "reused":
            first = append.writes[0]
            unnamed = f"{first.epoch}.{first.expected_version}"
            return KeyReusedError(first.stream, unnamed if append.key is None else append.key)
        case "blob":
            named = [(w.stream, b) for w in append.writes for d in w.events for b in d.blobs]
            return MissingBlobError(*named[place - 1])
        case _:
            return _refusal(append.writes[place - 1], status, there)


def _refusal(write: Write, status: str, there: int) -> StoreError:
    match status:
        case "fenced":
            return FencedError(write.stream, write.epoch, there)
        case "begun":
            return WrongExpectedVersionError(write.stream, NO_STREAM, there)
        case "parent":
            assert write.after is not None
            return WrongExpectedVersionError(*write.after, there)
        case _:
            return WrongExpectedVersionError(write.stream, write.expected_version, there)


GROUP_JOBS = 256
GROUP_BYTES = 1024 * 1024
"""The most bytes or appends of one call; always at least one append."""
_SETTINGS = b"""
SELECT set_config('lock_timeout', '10s', false), set_config('statement_timeout', '60s', false),
    CASE current_setting('synchronous_commit') WHEN 'off'
    THEN set_config('synchronous_commit', 'on', false) END
"""
_APPEND = f"SELECT * FROM append({', '.join(['%s'] * 32)})".encode()  # noqa: S608 - only marks
_ACQUIRE = b"SELECT * FROM acquire(%s, %s, %s, %s, %s)"


class Acquire(Struct, frozen=True):
    """See `EventStore.acquire`."""

    stream: str
    owner: str
    seen_epoch: int
    size: int = 0


Work: TypeAlias = Append | Acquire


class Job(Struct, eq=False):
    """Work for a call, and the future of its caller."""

    work: Work
    done: asyncio.Future[Any]

    def settle(self, result: object) -> None:
        """Set the result or error, if the caller still waits."""
        if self.done.done():
            return
        if isinstance(result, BaseException):
            self.done.set_exception(result)
        else:
            self.done.set_result(result)

    @property
    def stream(self) -> str:
        """The stream in the error about an unknown outcome."""
        work = self.work
        return work.stream if isinstance(work, Acquire) else work.writes[0].stream

    @property
    def name(self) -> tuple[str, str | None]:
        """The first stream and the key; an append with the same key is a repetition."""
        work = self.work
        return self.stream, None if isinstance(work, Acquire) else work.key


class PostgresWriter:
    """The only writing connection of a process, and its queue."""

    def __init__(
        self,
        address: Address,
        log_id: str,
        clock: Clock,
        committed: Callable[[int], None],
        *,
        patience_seconds: float = PATIENCE_SECONDS,
    ) -> None:
        self._address = address
        self._log_id = log_id
        self._clock = clock
        self._committed = committed
        self._patience_seconds = patience_seconds
        self._db: psycopg.AsyncConnection[Row] | None = None
        self._queue: deque[Job] = deque()
        self._task: asyncio.Task[None] | None = None
        self._closed = False

    def do(self, work: Work) -> asyncio.Future[Any]:
        """Do *work* in one of the next calls; the result comes once it is durable.

        Raises:
            LogUnavailableError: the store was closed.
        """
        if self._closed:
            raise LogUnavailableError(self._address.name, "it was closed")
        loop = asyncio.get_running_loop()
        done: asyncio.Future[Any] = loop.create_future()
        self._queue.append(Job(work, done))
        if self._task is None or self._task.done():
            # The task starts when all tasks that can run now have queued their work.
            self._task = loop.create_task(self._write())
        return done

    async def close(self) -> None:
        """Write the queued appends, and accept no more."""
        self._closed = True
        if self._task is not None:
            await asyncio.wait([self._task])
        await self._drop()

    async def _write(self) -> None:
        while self._queue:
            jobs = self._next_group()
            try:
                await self._call(jobs)
            except BaseException:
                # Only if this task was cancelled, or a bug ended it.
                for job in jobs:
                    job.settle(UnknownOutcomeError(job.stream, "the writer was stopped"))
                raise

    def _next_group(self) -> list[Job]:
        """Return the next appends, or the next acquisition, in order."""
        jobs = [self._queue.popleft()]
        size = jobs[0].work.size
        names = {jobs[0].name}
        while self._queue and len(jobs) < GROUP_JOBS:
            ours, others = jobs[0].work, self._queue[0].work
            size += others.size
            if size > GROUP_BYTES or isinstance(ours, Acquire) or isinstance(others, Acquire):
                break
            # A call looks up its keys at its beginning, so a repeated key waits for the next call.
            if others.key is not None and self._queue[0].name in names:
                break
            jobs.append(self._queue.popleft())
            names.add(jobs[-1].name)
        return jobs

    async def _call(self, jobs: Sequence[Job]) -> None:
        retries = Retries(self._patience_seconds)
        may_be_done = False  # by a call whose answer was lost
        while True:
            asked = False
            try:
                db = await self._connected()
                asked = True
                await self._once(db, jobs, again=may_be_done)
            except psycopg.Error as error:
                broken = is_broken(error)
                # If the server reports an error, it has undone the whole call.
                may_be_done = may_be_done or (asked and (broken or not state_of(error)))
                await self._drop()
                if (broken or is_locked(error)) and await retries.again():
                    continue
                await self._fail(jobs, error, unknown=may_be_done)
            except Exception as error:  # noqa: BLE001 - a bug in one append fails its caller only
                await self._fail(jobs, error, unknown=may_be_done)
            return

    async def _once(
        self, db: psycopg.AsyncConnection[Row], jobs: Sequence[Job], *, again: bool
    ) -> None:
        if isinstance(jobs[0].work, Acquire):
            jobs[0].settle(await self._acquire(db, jobs[0].work, again=again))
            return
        appends = [job.work for job in jobs if isinstance(job.work, Append)]
        asked = (self._log_id, clock_us(self._clock), *arguments(appends))
        cursor = await db.execute(_APPEND, asked, prepare=True, binary=True)
        for job, append, row in zip(jobs, appends, await cursor.fetchall(), strict=True):
            result = result_of(append, row)
            job.settle(result)
            if isinstance(result, Appended):
                self._committed(result.position)

    async def _acquire(
        self, db: psycopg.AsyncConnection[Row], work: Acquire, *, again: bool
    ) -> int | StoreError:
        stream, seen = work.stream, work.seen_epoch
        asked = (self._log_id, stream, category_of(stream), escaped(work.owner), seen)
        cursor = await db.execute(_ACQUIRE, asked, binary=True)
        [(status, id_, version, epoch, hash_, owner, *last)] = await cursor.fetchall()
        if status == "acquired":
            return int(epoch)
        if status == "fenced":
            # Perhaps by the first call, whose answer was lost.
            if again and (owner, epoch) == (escaped(work.owner), seen + 1):
                return int(epoch)
            return FencedError(stream, seen, epoch)
        event = None if last[0] is None else LastEvent(*last)
        fault = head_fault(StreamRow(id_, stream, version, epoch, hash_), event)
        at, position = (version, 0) if event is None else event[:2]
        return CorruptEventError(stream, at, position, fault or "its head is damaged")

    async def _fail(self, jobs: Sequence[Job], error: Exception, *, unknown: bool) -> None:
        """Give *error* to all jobs if the server is at fault, else to the job that caused it."""
        if len(jobs) > 1 and not unknown and not is_of_server(error):
            for job in jobs:
                await self._call([job])
            return
        for job in jobs:
            if unknown:
                job.settle(UnknownOutcomeError(job.stream, str(error).strip()))
            else:
                job.settle(self._failure(error))

    def _failure(self, error: Exception) -> Exception:
        if not isinstance(error, psycopg.Error):
            return error
        if state_of(error) == DAMAGED_TIME:
            return CorruptEventError("?", 0, int(error.diag.message_primary or 0), NO_TIME)
        return translated(error, self._address)

    async def _connected(self) -> psycopg.AsyncConnection[Row]:
        if self._db is None:
            self._db = await connect(self._address)
            await self._db.execute(_SETTINGS)
        return self._db

    async def _drop(self) -> None:
        db, self._db = self._db, None
        if db is not None:
            await discard(db)
