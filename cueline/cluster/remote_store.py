"""The log for a process of a cluster: an actor writes; a local file is read directly."""

import asyncio
from collections.abc import AsyncIterator, Callable, Collection, Sequence
from typing import Any, cast

from cueline.actors.runner_desk import ActorReply
from cueline.cluster.cluster_context import ClusterContext
from cueline.cluster.log_writer import EventPage, WriteMethod, WriteRequest
from cueline.cluster.proxy import PATIENCE_SECONDS, Outbox, Proxy
from cueline.cluster.ray_call import UNCLEAR, poll_seconds
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

BATCH = 256


class RemoteStore(Proxy):
    """See `EventStore` and `PresenceBoard`."""

    def __init__(self, context: ClusterContext) -> None:
        super().__init__(
            lambda: context.find(context.named("writer"), PATIENCE_SECONDS),
            retried=(*UNCLEAR, ClusterError),
        )
        self._context = context
        self._reader: EventStore | None = None
        self._looked = False
        self._outbox: Outbox[tuple[WriteRequest, asyncio.Future[object]]]
        self._outbox = Outbox(self._send, BATCH)

    @property
    def log_id(self) -> str:
        return self._context.factory.log_id

    async def head(self, stream: str) -> Head:
        return cast("Head", await self._look("head", stream))

    async def heads(self, streams: Collection[str]) -> dict[str, Head]:
        return cast("dict[str, Head]", await self._look("heads", list(streams)))

    async def acquire(self, stream: str, owner: str, seen_epoch: int) -> int:
        try:
            return cast("int", await self._write("acquire", stream, owner, seen_epoch))
        except FencedError:
            head = await self.head(stream)
            # Perhaps by an earlier call of ours whose answer was lost.
            if (head.owner, head.epoch) == (owner, seen_epoch + 1):
                return head.epoch
            raise

    async def append(self, writes: Sequence[Write], key: str | None) -> Appended:
        return cast("Appended", await self._write("append", writes, key))

    def read(
        self,
        stream: str,
        after: int = NO_STREAM,
        until: int | None = None,
        limit: int | None = None,
    ) -> AsyncIterator[RecordedEvent]:
        if reader := self._file():
            return reader.read(stream, after, until, limit)
        return self._pages(
            "read", limit, lambda last, left: (stream, last.version if last else after, until, left)
        )

    def read_back(
        self, stream: str, until: int | None = None, limit: int | None = None
    ) -> AsyncIterator[RecordedEvent]:
        if reader := self._file():
            return reader.read_back(stream, until, limit)
        return self._pages(
            "read_back",
            limit,
            lambda last, left: (stream, last.version - 1 if last else until, left),
        )

    def read_all(
        self, after: int = 0, categories: Collection[str] | None = None, limit: int | None = None
    ) -> AsyncIterator[RecordedEvent]:
        if reader := self._file():
            return reader.read_all(after, categories, limit)
        return self._pages(
            "read_all",
            limit,
            lambda last, left: (last.position if last else after, categories, left),
        )

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
            await self._ask("grown", after, poll_seconds())

    async def last_position(self) -> int:
        return cast("int", await self._look("last_position"))

    async def put_blob(self, content: bytes) -> str:
        return cast("str", await self._write("put_blob", content))

    async def get_blob(self, blob: str) -> bytes:
        return cast("bytes", await self._look("get_blob", blob))

    async def faults(self) -> Sequence[CorruptEventError]:
        return cast("Sequence[CorruptEventError]", await self._look("faults"))

    async def beat(self, presence: Presence) -> None:
        await self._write("beat", presence)

    async def leave(self, incarnation: str) -> None:
        await self._write("leave", incarnation)

    async def all(self) -> Sequence[Presence]:
        return cast("Sequence[Presence]", await self._ask("present"))

    async def close(self) -> None:
        await self._outbox.sent()
        if self._reader is not None:
            await self._reader.close()

    def _file(self) -> EventStore | None:
        """Return the log for reading here; None if its file is elsewhere."""
        if not self._looked:
            self._reader = self._context.factory.reader()
            self._looked = True
        return self._reader

    async def _look(self, method: str, *asked: object) -> Any:
        """Return the result of *method*, from the file if it is on this machine."""
        if reader := self._file():
            return await getattr(reader, method)(*asked)
        return await self._ask("ask", method, *asked)

    async def _pages(
        self,
        method: str,
        limit: int | None,
        asked: Callable[[RecordedEvent | None, int | None], tuple[object, ...]],
    ) -> AsyncIterator[RecordedEvent]:
        """Yield the writer's events; *asked* returns the arguments for the next page."""
        last: RecordedEvent | None = None
        more = True
        while more:
            page: EventPage = await self._ask("page", method, *asked(last, limit))
            for last in page.events:
                yield last
            limit = None if limit is None else limit - len(page.events)
            more = page.more and limit != 0

    async def _write(self, method: WriteMethod, *asked: object) -> object:
        done: asyncio.Future[object] = asyncio.get_running_loop().create_future()
        self._outbox.add((WriteRequest(method, asked), done))
        self._outbox.flush()
        return await done

    async def _send(self, batch: Sequence[tuple[WriteRequest, asyncio.Future[object]]]) -> None:
        try:
            answers = await self._ask("write", [request for request, _ in batch])
        except Exception as error:  # noqa: BLE001 - every waiter needs an answer
            answers = [ActorReply(error=_unknown(request, error)) for request, _ in batch]
        for (_, done), answer in zip(batch, answers, strict=True):
            answer.settle(done)

    async def _ask(self, method: str, *asked: object) -> Any:
        """Call the writer.

        Raises:
            LogUnavailableError: the writer stayed away; try again later.
        """
        try:
            return await self.call_again(method, *asked)
        except (*UNCLEAR, ClusterError) as error:
            raise LogUnavailableError("the log", "its writer cannot be reached") from error


def log_of(context: ClusterContext) -> tuple[EventStore, PresenceBoard]:
    """Return the log and its board, for a process of the cluster.

    Raises:
        LogUnavailableError: this process has to reach the log directly, and cannot.
    """
    if context.factory.writes_anywhere:
        return context.factory.log()
    remote = RemoteStore(context)
    return remote, remote


def _unknown(request: WriteRequest, error: Exception) -> CuelineError:
    """Return the error for a write without an answer."""
    writes = request.asked[0] if request.method == "append" else ()
    return UnknownOutcomeError(writes[0].stream if writes else "the log", str(error))
