"""The log in a process of a cluster: an actor writes it; a local file is read directly.

All requests of one turn of the event loop go in one call. The next batch gathers
meanwhile: under load the calls themselves are the delay.
"""

import asyncio
import time
from collections.abc import AsyncIterator, Collection, Sequence
from typing import Any, cast

from cueline.clock import SystemClock
from cueline.cluster.call import DEAD, UNCLEAR, Handle, call, end_frozen_actor, poll_seconds
from cueline.cluster.cluster_context import ClusterContext
from cueline.cluster.log_writer import (
    Acquire,
    Append,
    Beat,
    EventPage,
    Leave,
    PutBlob,
    Wish,
    WriterReply,
)
from cueline.errors import (
    ClusterError,
    CorruptEventError,
    CuelineError,
    FencedError,
    LogUnavailableError,
    UnknownOutcomeError,
)
from cueline.events.store import (
    NO_STREAM,
    Appended,
    EventStore,
    Head,
    Presence,
    PresenceBoard,
    RecordedEvent,
    Write,
)

PATIENCE_SECONDS = 20.0
"""How long to retry a dead writer; it is back within two seconds."""
CALL_SECONDS = 60.0
BATCH = 256
_AGAIN_SECONDS = 0.05


class RemoteStore:
    """See `EventStore` and `PresenceBoard`."""

    def __init__(self, site: ClusterContext) -> None:
        self._site = site
        self._clock = SystemClock()
        self._writer: Handle = None
        self._reader: EventStore | None = None
        self._looked = False
        self._wishes: list[tuple[Wish, asyncio.Future[object]]] = []
        self._sending: asyncio.Task[None] | None = None

    @property
    def log_id(self) -> str:
        return self._site.parts.log_id

    async def head(self, stream: str) -> Head:
        if reader := self._file():
            return await reader.head(stream)
        return cast("Head", await self._ask("head", stream))

    async def heads(self, streams: Collection[str]) -> dict[str, Head]:
        if reader := self._file():
            return await reader.heads(streams)
        return cast("dict[str, Head]", await self._ask("heads", list(streams)))

    async def acquire(self, stream: str, owner: str, seen_epoch: int) -> int:
        try:
            return cast("int", await self._request_write(Acquire(stream, owner, seen_epoch)))
        except FencedError:
            head = await self.head(stream)
            # Perhaps by an earlier call of ours whose answer was lost.
            if (head.owner, head.epoch) == (owner, seen_epoch + 1):
                return head.epoch
            raise

    async def append(self, writes: Sequence[Write], key: str | None) -> Appended:
        return cast("Appended", await self._request_write(Append(writes, key)))

    async def read(
        self,
        stream: str,
        after: int = NO_STREAM,
        until: int | None = None,
        limit: int | None = None,
    ) -> AsyncIterator[RecordedEvent]:
        if reader := self._file():
            async for event in reader.read(stream, after, until, limit):
                yield event
            return
        more = True
        while more:
            page = cast("EventPage", await self._ask("read", stream, after, until, limit))
            for event in page.events:
                yield event
                after = event.version
            limit = None if limit is None else limit - len(page.events)
            more = page.more and limit != 0

    async def read_back(
        self, stream: str, until: int | None = None, limit: int | None = None
    ) -> AsyncIterator[RecordedEvent]:
        if reader := self._file():
            async for event in reader.read_back(stream, until, limit):
                yield event
            return
        more = True
        while more:
            page = cast("EventPage", await self._ask("read_back", stream, until, limit))
            for event in page.events:
                yield event
                until = event.version - 1
            limit = None if limit is None else limit - len(page.events)
            more = page.more and limit != 0

    async def read_all(
        self, after: int = 0, categories: Collection[str] | None = None, limit: int | None = None
    ) -> AsyncIterator[RecordedEvent]:
        if reader := self._file():
            async for event in reader.read_all(after, categories, limit):
                yield event
            return
        more = True
        while more:
            page = cast("EventPage", await self._ask("read_all", after, categories, limit))
            for event in page.events:
                yield event
                after = event.position
            limit = None if limit is None else limit - len(page.events)
            more = page.more and limit != 0

    async def follow(
        self, after: int, categories: Collection[str] | None = None
    ) -> AsyncIterator[RecordedEvent]:
        if reader := self._file():
            async for event in reader.follow(after, categories):
                yield event
            return
        while True:
            end = await self.last_position()
            async for event in self.read_all(after, categories):
                yield event
                end = max(end, event.position)
            after = max(after, end)
            await self._growth(after)

    async def last_position(self) -> int:
        if reader := self._file():
            return await reader.last_position()
        return cast("int", await self._ask("last_position"))

    async def put_blob(self, content: bytes) -> str:
        return cast("str", await self._request_write(PutBlob(content)))

    async def get_blob(self, blob: str) -> bytes:
        if reader := self._file():
            return await reader.get_blob(blob)
        return cast("bytes", await self._ask("get_blob", blob))

    async def faults(self) -> Sequence[CorruptEventError]:
        if reader := self._file():
            return await reader.faults()
        return cast("Sequence[CorruptEventError]", await self._ask("faults"))

    async def beat(self, presence: Presence) -> None:
        await self._request_write(Beat(presence))

    async def leave(self, incarnation: str) -> None:
        await self._request_write(Leave(incarnation))

    async def all(self) -> Sequence[Presence]:
        return cast("Sequence[Presence]", await self._ask("present"))

    async def close(self) -> None:
        if self._sending is not None:
            await asyncio.wait([self._sending])
        if self._reader is not None:
            await self._reader.close()

    def _file(self) -> EventStore | None:
        """Return the log for reading here; None if its file is elsewhere."""
        if not self._looked:
            self._reader = self._site.parts.reader()
            self._looked = True
        return self._reader

    async def _request_write(self, options: Wish) -> object:
        loop = asyncio.get_running_loop()
        granted: asyncio.Future[object] = loop.create_future()
        self._wishes.append((options, granted))
        if self._sending is None or self._sending.done():
            # It starts when all tasks that can run now have added their requests.
            self._sending = loop.create_task(self._send())
        return await granted

    async def _send(self) -> None:
        while self._wishes:
            batch, self._wishes = self._wishes[:BATCH], self._wishes[BATCH:]
            try:
                answers = await self._ask("write", [options for options, _ in batch])
            except Exception as error:  # noqa: BLE001 - every waiter needs an answer
                answers = [WriterReply(error=_unknown(options, error)) for options, _ in batch]
            for (_, granted), answer in zip(batch, answers, strict=True):
                if granted.done():
                    continue
                if answer.error is None:
                    granted.set_result(answer.value)
                else:
                    granted.set_exception(answer.error)

    async def _ask(self, method: str, *asked: object) -> Any:
        """Call the writer and retry while it is away: every call may be repeated.

        Raises:
            LogUnavailableError: it stayed away; try again later.
        """
        deadline = time.monotonic() + PATIENCE_SECONDS
        while True:
            try:
                return await self._call(method, *asked)
            except (*DEAD, *UNCLEAR, ClusterError) as error:
                if isinstance(error, DEAD):
                    self._writer = None
                if time.monotonic() > deadline:
                    raise LogUnavailableError("the log", "its writer cannot be reached") from error
            await self._clock.sleep(_AGAIN_SECONDS)

    async def _growth(self, after: int) -> None:
        """Wait until the log may have grown."""
        await self._ask("grown", after, poll_seconds())

    async def _call(self, method: str, *asked: object) -> Any:
        writer = await self._found()
        with end_frozen_actor(writer):
            return await call(getattr(writer, method).remote(*asked), CALL_SECONDS)

    async def _found(self) -> Handle:
        if self._writer is None:
            self._writer = await self._site.find(self._site.named("writer"), PATIENCE_SECONDS)
        return self._writer


def log_of(site: ClusterContext) -> tuple[EventStore, PresenceBoard]:
    """Return the log and its board, for a process of the cluster.

    Raises:
        LogUnavailableError: this process has to reach the log by itself, and does not.
    """
    if site.parts.writes_anywhere:
        store, board, _ = site.parts.log()
        return store, board
    remote = RemoteStore(site)
    return remote, remote


def _unknown(options: Wish, error: Exception) -> CuelineError:
    """Return the error for a write without an answer."""
    stream = options.writes[0].stream if isinstance(options, Append) else "the log"
    return UnknownOutcomeError(stream, str(error))
