"""Writes to the log's file: one task for all appends of a process.

Appends queue. All appends that queued during the last commit go into the next
transaction (group commit). There is no delay to gather more: under load the commits
themselves are the delay.
"""

import asyncio
import sqlite3
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from time import monotonic, perf_counter
from typing import Any, TypeVar

from msgspec import Struct

from cueline.clock import Clock
from cueline.errors import CuelineError, LogLostError, StoreError, UnknownOutcomeError
from cueline.events.store import to_us
from cueline.sqlite_library import is_busy, is_full, is_unusable, sqlite_library
from cueline.stores.append_rules import Batch
from cueline.stores.sqlite_file import PATIENCE_SECONDS, RETRY_SECONDS, LogFile
from cueline.stores.sqlite_tables import SqliteTables
from cueline.stores.waiting import pause

GROUP_JOBS = 256
GROUP_BYTES = 1024 * 1024
"""The most jobs or bytes of one transaction; always at least one job."""
SMALL_GROUP = 4
QUICK_COMMIT_SECONDS = 0.001
"""A small group is committed on the event loop while commits are faster than this.

Handing it to a thread and back costs 0.15 ms.
"""

T = TypeVar("T")
Work = Callable[[Batch, SqliteTables], T]


class Job(Struct, eq=False):
    """Work for a transaction, and the future of its caller."""

    streams: Sequence[str]
    """The streams that it reads and writes; an unknown outcome names the first."""
    size: int
    work: Work[Any]
    done: asyncio.Future[Any]

    def succeed(self, result: object) -> None:
        """Set the result, if the caller still waits."""
        if not self.done.done():
            self.done.set_result(result)

    def fail(self, error: BaseException) -> None:
        """Set *error*, if the caller still waits."""
        if not self.done.done():
            self.done.set_exception(error)


Answer = tuple[object, CuelineError | None]


class SqliteWriter:
    """The only writing connection of a process, and its queue."""

    def __init__(
        self,
        file: LogFile,
        clock: Clock,
        committed: Callable[[], None],
        *,
        connect: Callable[[], sqlite3.Connection] | None = None,
        patience_seconds: float = PATIENCE_SECONDS,
    ) -> None:
        self._file = file
        self._clock = clock
        self._committed = committed
        self._connect = connect or file.writer
        self._patience_seconds = patience_seconds
        self._db: sqlite3.Connection | None = self._connect()
        self._queue: deque[Job] = deque()
        self._task: asyncio.Task[None] | None = None
        self._closed = False
        self._mean_seconds = 0.0
        self._thread = ThreadPoolExecutor(1, "cueline-log")

    def do(self, streams: Sequence[str], size: int, work: Work[T]) -> asyncio.Future[T]:
        """Do *work* in one of the next transactions; the result comes once it is durable.

        The future raises the error of *work*, and nothing was written; or

        Raises:
            LogUnavailableError: nothing was written; check the disk, repeat.
            UnknownOutcomeError: it may have been written; repeat with the same key.
            LogLostError: it was written to a file that other processes do not find; stop.
        """
        if self._closed:
            raise self._file.unavailable("it was closed")
        loop = asyncio.get_running_loop()
        done: asyncio.Future[T] = loop.create_future()
        self._queue.append(Job(streams, size, work, done))
        if self._task is None or self._task.done():
            # The task starts when all tasks that can run now have queued their work.
            self._task = loop.create_task(self._write())
        return done

    async def finish(self) -> None:
        """Write the queued jobs, and accept no more."""
        self._closed = True
        if self._task is not None:
            await asyncio.wait([self._task])
        self._thread.shutdown()

    def close(self) -> None:
        """Close the file."""
        self._drop()

    async def _write(self) -> None:
        while self._queue:
            jobs = self._next_group()
            try:
                await self._transact(jobs)
            except BaseException:
                # Only if this task was cancelled, or a bug ended it.
                for job in jobs:
                    job.fail(UnknownOutcomeError(job.streams[0], "the writer was stopped"))
                raise

    def _next_group(self) -> list[Job]:
        jobs = [self._queue.popleft()]
        size = jobs[0].size
        while self._queue and len(jobs) < GROUP_JOBS:
            size += self._queue[0].size
            if size > GROUP_BYTES:
                break
            jobs.append(self._queue.popleft())
        return jobs

    async def _transact(self, jobs: Sequence[Job]) -> None:
        is_large = jobs[0].size > GROUP_BYTES
        try:
            db = await self._begin()
            answers = (
                await self._in_thread(self._run, db, jobs) if is_large else self._run(db, jobs)
            )
        except Exception as error:  # noqa: BLE001 - a bug in one append fails its caller only
            self._roll_back()
            await self._divide(jobs, error)
            return
        try:
            await self._commit(db, in_thread=is_large or len(jobs) > SMALL_GROUP)
        except sqlite_library().Error as error:
            self._drop()
            for job in jobs:
                job.fail(self._after_commit(job, error))
            return
        try:
            self._file.check()
        except LogLostError as error:
            for job in jobs:
                job.fail(error)
            return
        for job, (result, refused) in zip(jobs, answers, strict=True):
            if refused is None:
                job.succeed(result)
            else:
                job.fail(refused)
        self._committed()

    async def _divide(self, jobs: Sequence[Job], error: Exception) -> None:
        """Give *error* to all jobs if the file is at fault, else to the job that caused it."""
        if len(jobs) > 1 and not isinstance(error, StoreError) and not is_unusable(error):
            for job in jobs:
                await self._transact([job])
            return
        for job in jobs:
            if isinstance(error, sqlite_library().Error):
                job.fail(self._file.error(error))
            else:
                job.fail(error)

    async def _begin(self) -> sqlite3.Connection:
        # SQLite's own waiting would block the loop, and starve beside a busy writer.
        self._file.check_index()
        deadline = monotonic() + self._patience_seconds
        while True:
            if self._db is None:
                self._file.check()  # another file is at the path: it is not ours to write to
                self._db = self._connect()
            try:
                # Not plain BEGIN: two writers could both pass the checks, and one would get
                # "database is locked" instead of WrongExpectedVersionError.
                self._db.execute("BEGIN IMMEDIATE")
            except sqlite_library().OperationalError as error:
                if not is_busy(error) or monotonic() > deadline:
                    raise
                await pause(RETRY_SECONDS)
            else:
                return self._db

    def _run(self, db: sqlite3.Connection, jobs: Sequence[Job]) -> list[Answer]:
        tables = SqliteTables(db)
        batch = Batch(tables, to_us(self._clock.now()))
        if len(jobs) > SMALL_GROUP:
            batch.look_up({stream for job in jobs for stream in job.streams})
        answers: list[Answer] = []
        for job in jobs:
            try:
                answers.append((job.work(batch, tables), None))
            except CuelineError as error:
                # A refused append has changed nothing: the others continue.
                answers.append((None, error))
        batch.finish()
        return answers

    async def _commit(self, db: sqlite3.Connection, *, in_thread: bool) -> None:
        if in_thread or self._mean_seconds > QUICK_COMMIT_SECONDS:
            await self._in_thread(self._timed_commit, db)
        else:
            self._timed_commit(db)

    def _timed_commit(self, db: sqlite3.Connection) -> None:
        # An eighth: one commit of 8 ms is enough to move off the loop.
        began = perf_counter()
        db.execute("COMMIT")
        self._mean_seconds += (perf_counter() - began - self._mean_seconds) / 8

    def _after_commit(self, job: Job, error: Exception) -> StoreError:
        # On a full disk the commit's last page was not written: it did not happen. After any other
        # error it may reappear when the file is next opened.
        if is_full(error):
            return self._file.error(error)
        return UnknownOutcomeError(job.streams[0], str(error))

    def _roll_back(self) -> None:
        try:
            if self._db is not None and self._db.in_transaction:
                self._db.execute("ROLLBACK")
        except sqlite_library().Error:
            self._drop()

    def _drop(self) -> None:
        """Close the connection, which ends its transaction; the next one opens a new connection."""
        db, self._db = self._db, None
        if db is not None:
            with suppress(sqlite_library().Error):
                db.close()

    async def _in_thread(self, do: Callable[..., T], *args: object) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._thread, do, *args)
