"""The log's writer on a cluster: the one actor that appends, on the machine of the file."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal, NamedTuple

import ray
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

from cueline.actors.runner_desk import ActorReply
from cueline.cluster.cluster_context import ClusterContext
from cueline.cluster.ray_call import (
    DEAD,
    PAGE_BYTES,
    UNCLEAR,
    Handle,
    ask_head,
    call,
    end_frozen_actor,
)
from cueline.errors import ClusterError, CuelineError
from cueline.events.store import EventStore, Presence, PresenceBoard, RecordedEvent
from cueline.runtime.actor_factory import ActorFactory

START_SECONDS = 60.0

WriteMethod = Literal["append", "acquire", "put_blob", "beat", "leave"]


class WriteRequest(NamedTuple):
    """A call that writes to the store or the board; it may be repeated."""

    method: WriteMethod
    asked: tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class EventPage:
    """A page of events, and whether there may be more."""

    events: Sequence[RecordedEvent]
    more: bool


class LogWriterActor:
    """Holds the log's file for the processes of a cluster.

    Ray restarts the writer when it dies; two writers at a time are harmless, since the lock
    is in the file. The writer opens the log at the first request.
    """

    def __init__(self, factory: ActorFactory) -> None:
        self._factory = factory
        self._opened: tuple[EventStore, PresenceBoard] | None = None

    async def start(self) -> str:
        """Open the log and return its id.

        Raises:
            LogUnavailableError: the log cannot be opened here; the message says why.
        """
        return self._log()[0].log_id

    async def write(self, requests: Sequence[WriteRequest]) -> list[ActorReply]:
        """Do all writes of *requests*, which succeed or fail independently."""
        return await asyncio.gather(*map(self._answer, requests))

    async def ask(self, method: str, *asked: object) -> Any:
        """Return the result of a reading *method* of the store."""
        return await getattr(self._log()[0], method)(*asked)

    async def page(self, method: str, *asked: object) -> EventPage:
        """Return the first events of a reading *method* of the store."""
        return await page_of(getattr(self._log()[0], method)(*asked))

    async def grown(self, after: int, seconds: float) -> int:
        """Return the last position, once it is above *after* or *seconds* are over."""
        try:
            async with asyncio.timeout(seconds):
                async for recorded in self._log()[0].follow(after):
                    return recorded.position
        except TimeoutError:
            pass
        return after

    async def present(self) -> Sequence[Presence]:
        return await self._log()[1].all()

    async def _answer(self, request: WriteRequest) -> ActorReply:
        try:
            store, board = self._log()
            target = board if request.method in ("beat", "leave") else store
            return ActorReply(await getattr(target, request.method)(*request.asked))
        except CuelineError as error:
            return ActorReply(error=error)

    def _log(self) -> tuple[EventStore, PresenceBoard]:
        if self._opened is None:
            self._opened = self._factory.log()
        return self._opened


async def start_writer(context: ClusterContext) -> Handle:
    """Start the log's writer, unless it runs; Ray restarts it. None if the log needs no writer.

    Raises:
        ClusterError: the machine with the log is not in the cluster; try again later.
    """
    if context.factory.writes_anywhere:
        return None
    node = await _node_of_log(context)
    affinity = NodeAffinitySchedulingStrategy(node, soft=False)
    placement = {"num_cpus": 0, "scheduling_strategy": affinity}
    name = context.named("writer")
    create = partial(context.create, LogWriterActor, name, context.factory)
    return await ask_head(partial(create, restarts=True, placement=placement))


async def _node_of_log(context: ClusterContext) -> str:
    """Return the Ray node on the machine with the log, also after a restart of the machine."""
    nodes = [node for node in await ask_head(ray.nodes) if node["Alive"]]
    if any(node["NodeID"] == context.node for node in nodes):
        return context.node
    for node in nodes:
        if node["NodeManagerAddress"] == context.address:
            return str(node["NodeID"])
    reason = "the machine with the log is not in the cluster; everything waits until it is back"
    raise ClusterError(context.address, reason)


async def open_log(context: ClusterContext, writer: Handle) -> None:
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
    if log_id != context.factory.log_id:
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
