"""The log's writer on a cluster: the only actor that appends, on the file's machine."""

import asyncio
from collections.abc import AsyncIterator, Collection, Sequence
from dataclasses import dataclass
from functools import partial
from typing import assert_never

import ray
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

from cueline.cluster.call import DEAD, PAGE_BYTES, UNCLEAR, Handle, ask_head, call, end_frozen_actor
from cueline.cluster.cluster_context import ActorFactory, ClusterContext
from cueline.errors import ClusterError, CorruptEventError, CuelineError
from cueline.events.store import EventStore, Head, Presence, PresenceBoard, RecordedEvent, Write

START_SECONDS = 60.0


@dataclass(frozen=True, slots=True)
class Append:
    """See `EventStore.append`."""

    writes: Sequence[Write]
    key: str | None


@dataclass(frozen=True, slots=True)
class Acquire:
    """See `EventStore.acquire`."""

    stream: str
    owner: str
    seen_epoch: int


@dataclass(frozen=True, slots=True)
class PutBlob:
    """See `EventStore.put_blob`."""

    content: bytes


@dataclass(frozen=True, slots=True)
class Beat:
    """See `PresenceBoard.beat`."""

    presence: Presence


@dataclass(frozen=True, slots=True)
class Leave:
    """See `PresenceBoard.leave`."""

    incarnation: str


Wish = Append | Acquire | PutBlob | Beat | Leave
"""A write; each may be requested twice."""


@dataclass(frozen=True, slots=True)
class WriterReply:
    """The result of one write of a batch."""

    value: object = None
    error: CuelineError | None = None


@dataclass(frozen=True, slots=True)
class EventPage:
    """Some events, and whether there may be more."""

    events: Sequence[RecordedEvent]
    more: bool


class LogWriterActor:
    """Holds the log's file for the processes of a cluster.

    Ray restarts it when it dies; two at a time do no harm, since the file has the only
    lock. It opens the log at the first request.
    """

    def __init__(self, parts: ActorFactory) -> None:
        self._parts = parts
        self._opened: tuple[EventStore, PresenceBoard, str] | None = None

    async def start(self) -> str:
        """Open the log and return its id.

        Raises:
            LogUnavailableError: it cannot be opened here; the message says why.
        """
        return self._log()[2]

    async def write(self, wishes: Sequence[Wish]) -> list[WriterReply]:
        """Do all writes of *wishes*; each succeeds or fails by itself."""
        return await asyncio.gather(*(self._answer(options) for options in wishes))

    async def head(self, stream: str) -> Head:
        return await self._store().head(stream)

    async def heads(self, streams: Collection[str]) -> dict[str, Head]:
        return await self._store().heads(streams)

    async def last_position(self) -> int:
        return await self._store().last_position()

    async def read(
        self, stream: str, after: int, until: int | None, limit: int | None
    ) -> EventPage:
        """Return the first events of `EventStore.read`."""
        return await page_of(self._store().read(stream, after, until, limit))

    async def read_back(self, stream: str, until: int | None, limit: int | None) -> EventPage:
        """Return the first events of `EventStore.read_back`."""
        return await page_of(self._store().read_back(stream, until, limit))

    async def read_all(
        self, after: int, categories: Collection[str] | None, limit: int | None
    ) -> EventPage:
        """Return the first events of `EventStore.read_all`."""
        return await page_of(self._store().read_all(after, categories, limit))

    async def grown(self, after: int, seconds: float) -> int:
        """Return the last position, once it is above *after* or *seconds* are over."""
        try:
            async with asyncio.timeout(seconds):
                async for recorded in self._store().follow(after):
                    return recorded.position
        except TimeoutError:
            pass
        return after

    async def get_blob(self, blob: str) -> bytes:
        return await self._store().get_blob(blob)

    async def faults(self) -> Sequence[CorruptEventError]:
        return await self._store().faults()

    async def present(self) -> Sequence[Presence]:
        return await self._log()[1].all()

    async def _answer(self, options: Wish) -> WriterReply:
        try:
            return WriterReply(await self._grant(options))
        except CuelineError as error:
            return WriterReply(error=error)

    async def _grant(self, options: Wish) -> object:
        store, board, _ = self._log()
        match options:
            case Append(writes, key):
                return await store.append(writes, key)
            case Acquire(stream, owner, seen_epoch):
                return await store.acquire(stream, owner, seen_epoch)
            case PutBlob(content):
                return await store.put_blob(content)
            case Beat(presence):
                await board.beat(presence)
                return None
            case Leave(incarnation):
                await board.leave(incarnation)
                return None
            case _:
                assert_never(options)

    def _store(self) -> EventStore:
        return self._log()[0]

    def _log(self) -> tuple[EventStore, PresenceBoard, str]:
        if self._opened is None:
            self._opened = self._parts.log()
        return self._opened


async def start_writer(site: ClusterContext) -> Handle:
    """Start the log's writer, unless it runs; Ray restarts it. None if it needs none.

    Raises:
        ClusterError: the machine with the log is not in the cluster; try again later.
    """
    if site.parts.writes_anywhere:
        return None
    node = await _node_of_log(site)
    affinity = NodeAffinitySchedulingStrategy(node, soft=False)
    placement = {"num_cpus": 0, "scheduling_strategy": affinity}
    name = site.named("writer")
    create = partial(site.create, LogWriterActor, name, site.parts)
    return await ask_head(partial(create, restarts=True, placement=placement))


async def _node_of_log(site: ClusterContext) -> str:
    """Return the Ray node on the machine with the log: another, if that has restarted."""
    nodes = [node for node in await ask_head(ray.nodes) if node["Alive"]]
    if any(node["NodeID"] == site.node for node in nodes):
        return site.node
    for node in nodes:
        if node["NodeManagerAddress"] == site.address:
            return str(node["NodeID"])
    reason = "the machine with the log is not in the cluster; everything waits until it is back"
    raise ClusterError(site.address, reason)


async def open_log(site: ClusterContext, writer: Handle) -> None:
    """Wait until *writer* has opened the log.

    Raises:
        LogUnavailableError: the log cannot be opened on the node that was named.
        ClusterError: the writer does not start, or has another log.
    """
    if writer is None:
        return
    try:
        with end_frozen_actor(writer):
            log_id = await call(writer.start.remote(), START_SECONDS)
    except (*DEAD, *UNCLEAR) as error:
        raise ClusterError("the cluster", "the log's writer does not start") from error
    if log_id != site.parts.log_id:
        # The same path on another machine, or in another container.
        reason = "its node here has another log at this path; a cluster has to share the disk"
        raise ClusterError("the cluster", reason)


async def page_of(events: AsyncIterator[RecordedEvent]) -> EventPage:
    """Return the first of *events*, about `PAGE_BYTES` of them."""
    page: list[RecordedEvent] = []
    size = 0
    async for event in events:
        page.append(event)
        size += len(event.payload or b"")
        if size > PAGE_BYTES:
            return EventPage(page, more=True)
    return EventPage(page, more=False)
