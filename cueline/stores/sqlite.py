"""The log in a SQLite file: durable, for all processes of one machine."""

import asyncio
import os
from collections.abc import AsyncIterator, Collection, Sequence
from contextlib import suppress
from datetime import datetime, timedelta
from hashlib import sha256
from pathlib import Path
from typing import Self

from cueline.clock import Clock
from cueline.errors import BlobTooLargeError, CorruptEventError, MissingBlobError, StoreError
from cueline.events.snapshot import NO_SNAPSHOTS, SnapshotStore, emptied_streams
from cueline.events.store import BLOB_LIMIT, Appended, Head, RecordedEvent, Write, to_us
from cueline.stores.append_rules import BLOB_REST, check_form, check_text
from cueline.stores.paging import PagedStore
from cueline.stores.sqlite_file import LogFile
from cueline.stores.sqlite_reader import SqliteReader
from cueline.stores.sqlite_writer import SqliteWriter
from cueline.stores.waiting import Notifier, take_turns

POLL_SECONDS = 0.02
"""How often a follower checks whether another process has appended."""
_QUIET_SECONDS = 2.0
_QUIET_POLL_SECONDS = 0.05
"""The same, when no process has appended for `_QUIET_SECONDS`."""
LARGE_BLOB = 1024 * 1024
"""From this size, a blob is hashed, written and read in a thread, in bytes."""
RENEWED_US = BLOB_REST // timedelta(microseconds=2)
"""A blob stored so recently is not written again to renew its time."""
_LOG = ("the log",)
"""The stream name in errors about blobs."""


class SqliteStore(PagedStore):
    """A log in one file; see `EventStore`.

    Any process on the machine may open it and append. Each has one writer, and keeps no
    data of the file between transactions. Use a store in one event loop.
    """

    def __init__(
        self,
        file: LogFile,
        log_id: str,
        clock: Clock,
        writer: SqliteWriter | None,
        bell: Notifier,
        *,
        snapshots: SnapshotStore = NO_SNAPSHOTS,
    ) -> None:
        self._file = file
        self._clock = clock
        self._snapshots = snapshots
        self._writer = writer
        self._bell = bell
        self._reader = SqliteReader(file)
        super().__init__(self._reader)
        file.hold()
        self._seen_version = self._reader.data_version()
        self._watch: asyncio.Task[None] | None = None
        self._followers = 0
        self.log_id = log_id
        """See `EventStore.log_id`."""

    @classmethod
    def open(
        cls,
        path: str | os.PathLike[str],
        clock: Clock,
        *,
        must_exist: bool = False,
        read_only: bool = False,
        snapshots: SnapshotStore = NO_SNAPSHOTS,
    ) -> Self:
        """Open the log at *path*; create it, unless it *must_exist* or is *read_only*.

        Redacting events also deletes the *snapshots* folded from them.

        Raises:
            LogUnavailableError: it cannot be used; the message says what to do.
            LogFormatError: another format wrote it; the message says what to upgrade.
            ConfigError: this machine's SQLite is too old; the message says what to install.
        """
        file = LogFile(Path(path))
        now_us = to_us(clock.now())
        log_id = file.open(must_exist=must_exist, read_only=read_only, now_us=now_us)
        bell = Notifier()
        writer = None if read_only else SqliteWriter(file, clock, bell.ring)
        return cls(file, log_id, clock, writer, bell, snapshots=snapshots)

    @property
    def path(self) -> Path:
        """The path of the log."""
        return self._file.path

    async def head(self, stream: str) -> Head:
        return self._reader.head(stream)

    async def acquire(self, stream: str, owner: str, seen_epoch: int) -> int:
        check_text(owner)
        return await self._writes().do(
            [stream], 0, lambda batch, _: batch.acquire(stream, owner, seen_epoch)
        )

    async def append(self, writes: Sequence[Write], key: str | None) -> Appended:
        size = check_form(writes, key)
        # Before the append, in case this process is killed; after it, in case a snapshot was
        # written meanwhile.
        if emptied := emptied_streams(writes):
            await self._snapshots.forget(emptied)
        appended = await self._writes().do(
            [write.stream for write in writes], size, lambda batch, _: batch.append(writes, key)
        )
        if emptied:
            await self._snapshots.forget(emptied)
        return appended

    async def follow(
        self, after: int, categories: Collection[str] | None = None
    ) -> AsyncIterator[RecordedEvent]:
        while True:
            last = await self._reader.last_position()
            while after < last:
                page = await self._reader.log_page(after, last, categories)
                for event in page.events:
                    yield event
                after = page.seen
                await take_turns()
            if await self._reader.last_position() <= after:
                await self._growth()

    async def put_blob(self, content: bytes) -> str:
        size = len(content)
        if size > BLOB_LIMIT:
            raise BlobTooLargeError(size, BLOB_LIMIT)
        blob = _hash(content) if size < LARGE_BLOB else await asyncio.to_thread(_hash, content)
        put_us = to_us(self._clock.now())
        if self._reader.blob_put_us(blob) > put_us - RENEWED_US:
            return blob
        await self._writes().do(
            _LOG, size, lambda _, tables: tables.put_blob(blob, content, put_us)
        )
        return blob

    async def get_blob(self, blob: str) -> bytes:
        if self._reader.blob_size(blob) < LARGE_BLOB:
            content = self._blob(self._reader, blob)
        else:
            content = await asyncio.to_thread(self._large_blob, blob)
        if content is None:
            raise MissingBlobError("the log", blob)
        return content

    async def faults(self) -> list[CorruptEventError]:
        return self._reader.faults()

    async def collect_blobs(self, now: datetime) -> int:
        """Delete blobs without references that are a day old; return their number."""
        rested_us = to_us(now - BLOB_REST)
        return await self._writes().do(_LOG, 0, lambda _, tables: tables.collect_blobs(rested_us))

    async def close(self) -> None:
        if self._watch is not None:
            self._watch.cancel()
        if self._writer is not None:
            await self._writer.finish()
        # The last connection that is closed writes the WAL into the file, unless it is for reading.
        # The WAL must stay if another process may have written to another file at this path.
        closing: list[SqliteReader | SqliteWriter | None] = [self._reader, self._writer]
        if self._file.index_became() is not None:
            closing.reverse()
        self._file.let_go()
        for each in closing:
            if each is not None:
                each.close()
        self._bell.ring()

    def _large_blob(self, blob: str) -> bytes | None:
        reader = SqliteReader(self._file)  # the other connection belongs to the loop's thread
        try:
            return self._blob(reader, blob)
        finally:
            reader.close()

    def _blob(self, reader: SqliteReader, blob: str) -> bytes | None:
        content = reader.blob(blob)
        # Content with another hash is not the blob.
        return content if content is not None and _hash(content) == blob else None

    def _writes(self) -> SqliteWriter:
        if self._writer is None:
            raise self._file.unavailable("it was opened for reading only")
        return self._writer

    async def _growth(self) -> None:
        """Wait until the log may have grown."""
        if self._grew():
            return
        self._followers += 1
        if self._watch is None or self._watch.done():
            self._watch = asyncio.get_running_loop().create_task(self._watch_others())
        try:
            await self._bell.wait()
        finally:
            self._followers -= 1
            if self._followers == 0 and self._watch is not None:
                self._watch.cancel()
                self._watch = None

    async def _watch_others(self) -> None:
        with suppress(StoreError):
            quiet = 0.0
            while True:
                seconds = POLL_SECONDS if quiet < _QUIET_SECONDS else _QUIET_POLL_SECONDS
                await self._clock.sleep(seconds)
                quiet = 0.0 if self._grew() else quiet + seconds
        # Waiters read again, and get the error.
        self._bell.ring()

    def _grew(self) -> bool:
        """Wake all waiters if any process has committed since the last check."""
        version = self._reader.data_version()
        grew = version != self._seen_version
        if grew:
            self._seen_version = version
            self._bell.ring()
        return grew


def _hash(content: bytes) -> str:
    return sha256(content).hexdigest()
