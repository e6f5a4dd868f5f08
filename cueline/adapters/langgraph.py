"""A checkpointer of LangGraph that stores the threads of graphs in a cueline log."""

import asyncio
import builtins
import threading
from base64 import b64decode, b64encode
from collections import defaultdict
from collections.abc import (
    AsyncIterator,
    Callable,
    Coroutine,
    Iterator,
    Sequence,
)
from concurrent.futures import Future
from functools import wraps
from operator import itemgetter
from typing import Any, Self, TypeVar, cast

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import (
    WRITES_IDX_MAP,
    BaseCheckpointSaver,
    ChannelVersions,
    Checkpoint,
    CheckpointMetadata,
    CheckpointTuple,
    get_checkpoint_id,
    get_checkpoint_metadata,
)
from langgraph.checkpoint.serde.base import SerializerProtocol

from cueline.adapters.langgraph_threads import (
    CATEGORY,
    CheckpointPlace,
    HeldEvents,
    ThreadLog,
    place_fields,
)
from cueline.clock import SystemClock
from cueline.events.checkpoint import CheckpointStored, WriteStored
from cueline.events.codec import Codec
from cueline.events.journal import Journal
from cueline.events.log_url import LogName
from cueline.events.stream import DEFAULT_TENANT, stream_name
from cueline.stores.backend import backend_of

T = TypeVar("T")
_STRATEGIES = ("keep_latest", "delete")


Work = Callable[..., Coroutine[Any, Any, T]]


def _on_own_loop(work: Work[T]) -> Work[T]:
    """Return a method that runs *work* in the saver's event loop."""
    return wraps(work)(lambda self, *a, **named: self._run(work(self, *a, **named)))


def _blocking(work: Work[T]) -> Callable[..., T]:
    """Return a blocking method that any thread may call; it waits for *work*."""
    return wraps(work)(
        lambda self, *args, **named: self._begin(work(self, *args, **named)).result()
    )


class CuelineSaver(BaseCheckpointSaver[int]):
    """Stores the checkpoints of LangGraph in *log*: a path, a URL of PostgreSQL, or `memory:`.

    Each method returns when its events are durable. A repeated put or write changes
    nothing. The saver uses the log in a separate thread, so one saver serves graphs in
    any number of threads and event loops. `close` the saver, or use it in a `with`.
    A put or write raises the errors of `EventStore.append`: invoke the graph again.

    Raises:
        ConfigError: the log's scheme is unknown, or its package is missing.
        InvalidNameError: the tenant is invalid.
        LogUnavailableError: the log cannot be opened; the message says what to do.
    """

    def __init__(
        self,
        log: LogName,
        *,
        tenant: str = DEFAULT_TENANT,
        serde: SerializerProtocol | None = None,
    ) -> None:
        super().__init__(serde=serde)
        stream_name(CATEGORY, "thread", tenant)
        clock = SystemClock()
        self._loop = asyncio.new_event_loop()
        self._store = backend_of(log).open(clock)
        journal = Journal(self._store, Codec(), clock.now)
        self._threads = ThreadLog(self._store, journal, tenant)
        self._thread = threading.Thread(
            target=self._loop.run_forever, name="cueline-saver", daemon=True
        )
        self._thread.start()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the log; after that the saver cannot be used."""
        if self._loop.is_closed():
            return
        self._begin(self._store.close()).result()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    @_on_own_loop
    async def aget_tuple(self, config: RunnableConfig) -> CheckpointTuple | None:
        """Return the checkpoint that *config* names, or the thread's newest; None without any."""
        thread, namespace, id_ = _place(config)
        id_ = id_ or await self._threads.newest(thread, namespace)
        return self._tuple(await self._threads.read((thread, namespace, id_))) if id_ else None

    async def alist(self, *args: Any, **named: Any) -> AsyncIterator[CheckpointTuple]:
        """Read the checkpoints of the thread of *config*, or of all threads, newest first.

        The arguments are those of `BaseCheckpointSaver.alist`; *filter* has values of the metadata.
        """
        for each in await self._run(self._list(*args, **named)):
            yield each

    async def aput(
        self,
        config: RunnableConfig,
        checkpoint: Checkpoint,
        metadata: CheckpointMetadata,
        new_versions: ChannelVersions,  # noqa: ARG002 - each checkpoint is stored whole
    ) -> RunnableConfig:
        """Store or replace *checkpoint*, by its id; return the config that names it."""
        fact = self._stored(config, checkpoint, metadata)
        await self._run(
            self._threads.append((fact.thread, fact.namespace, fact.checkpoint), [fact])
        )
        return _config(fact.thread, fact.namespace, fact.checkpoint)

    async def aput_writes(
        self,
        config: RunnableConfig,
        writes: Sequence[tuple[str, Any]],
        task_id: str,
        task_path: str = "",
    ) -> None:
        """Store the writes of a task after the checkpoint of *config*."""
        facts = self._written(config, writes, task_id, task_path)
        await self._run(self._threads.append(_place(config), facts))

    @_on_own_loop
    async def adelete_thread(self, thread_id: str) -> None:
        """Delete the thread: its events stay, without their content."""
        await self._threads.delete_thread(thread_id)

    @_on_own_loop
    async def adelete_for_runs(self, run_ids: Sequence[str]) -> None:
        """Delete the checkpoints of these runs, and their writes, in all threads."""
        for thread in await self._threads.threads() if run_ids else ():
            found = defaultdict[str, set[str]](set)
            for place in await self._threads.places(thread):
                stored = (await self._threads.read(place)).stored
                if stored and self._load(stored.metadata).get("run_id") in run_ids:
                    found[place[1]].add(place[2])
            for space, ids in found.items():
                await self._threads.delete(thread, space, ids)

    @_on_own_loop
    async def acopy_thread(self, source_thread_id: str, target_thread_id: str) -> None:
        """Copy all checkpoints and writes of a thread into another thread."""
        for place in sorted(await self._threads.places(source_thread_id)):
            held = await self._threads.read(place)
            for facts in [held.stored] if held.stored else [], list(held.writes.values()):
                copied = [fact.model_copy(update={"thread": target_thread_id}) for fact in facts]
                await self._threads.append((target_thread_id, *place[1:]), copied)

    @_on_own_loop
    async def aprune(self, thread_ids: Sequence[str], *, strategy: str = "keep_latest") -> None:
        """Delete all but the newest checkpoint of each namespace; with "delete", delete all.

        Checkpoints that the newest checkpoint needs to build a `DeltaChannel` stay.

        Raises:
            ValueError: the strategy is unknown.
        """
        if strategy not in _STRATEGIES:
            raise ValueError(f"strategy is {strategy!r}; known are {', '.join(_STRATEGIES)}")
        for thread in thread_ids:
            if strategy == "delete":
                await self.adelete_thread(thread)
                continue
            for space in await self._threads.namespaces(thread):
                # Read the places first: checkpoints that are put meanwhile stay.
                ids = {id_ for _, _, id_ in await self._threads.places(thread, space)}
                await self._threads.delete(thread, space, ids - await self._needed(thread, space))

    def list(self, *args: Any, **named: Any) -> Iterator[CheckpointTuple]:
        """See `alist`."""
        yield from self._begin(self._list(*args, **named)).result()

    get_tuple = _blocking(aget_tuple)
    put = _blocking(aput)
    put_writes = _blocking(aput_writes)
    delete_thread = _blocking(adelete_thread)
    delete_for_runs = _blocking(adelete_for_runs)
    copy_thread = _blocking(acopy_thread)
    prune = _blocking(aprune)

    async def _run(self, work: Coroutine[Any, Any, T]) -> T:
        return await asyncio.wrap_future(self._begin(work))

    def _begin(self, work: Coroutine[Any, Any, T]) -> "Future[T]":
        return asyncio.run_coroutine_threadsafe(work, self._loop)

    def _dump(self, value: object) -> str:
        kind, content = self.serde.dumps_typed(value)
        return f"{kind}:{b64encode(content).decode()}"

    def _load(self, text: str) -> Any:
        kind, _, content = text.partition(":")
        return self.serde.loads_typed((kind, b64decode(content)))

    def _stored(
        self, config: RunnableConfig, checkpoint: Checkpoint, metadata: CheckpointMetadata
    ) -> CheckpointStored:
        thread, namespace, parent = _place(config)
        values = {name: self._dump(each) for name, each in checkpoint["channel_values"].items()}
        return CheckpointStored(
            thread=thread,
            namespace=namespace,
            checkpoint=checkpoint["id"],
            parent=parent,
            content=self._dump({**checkpoint, "channel_values": {}}),
            metadata=self._dump(get_checkpoint_metadata(config, metadata)),
            values=values,
        )

    def _written(
        self, config: RunnableConfig, writes: Sequence[tuple[str, Any]], task: str, path: str
    ) -> Sequence[WriteStored]:
        return [
            WriteStored(
                **place_fields(_place(config)),
                task=task,
                path=path,
                index=WRITES_IDX_MAP.get(channel, index),
                channel=channel,
                content=self._dump(value),
            )
            for index, (channel, value) in enumerate(writes)
        ]

    async def _needed(self, thread: str, namespace: str) -> set[str]:
        """Return the newest checkpoint, and the earlier ones that contain some of its values."""
        kept: set[str] = set()
        id_ = await self._threads.newest(thread, namespace)
        while stored := (await self._threads.read((thread, namespace, id_))).stored:
            kept.add(id_)
            since = self._load(stored.metadata).get("counters_since_delta_snapshot") or {}
            if not any(map(any, since.values())):
                break
            id_ = stored.parent
        return kept

    async def _list(
        self,
        config: RunnableConfig | None,
        *,
        filter: dict[str, Any] | None = None,  # noqa: A002 - LangGraph's name
        before: RunnableConfig | None = None,
        limit: int | None = None,
    ) -> Sequence[CheckpointTuple]:
        threads = [_place(config)[0]] if config else await self._threads.threads()
        namespace = config["configurable"].get("checkpoint_ns") if config else None
        only = get_checkpoint_id(config) if config else None
        end = get_checkpoint_id(before) if before else None
        places = [
            place for thread in threads for place in await self._threads.places(thread, namespace)
        ]
        chosen: builtins.list[CheckpointTuple] = []
        for place in sorted(places, key=itemgetter(2), reverse=True):
            if limit is not None and len(chosen) >= limit:
                break
            if only not in {None, place[2]} or (end and place[2] >= end):
                continue
            found = self._tuple(await self._threads.read(place))
            if found and (filter or {}).items() <= found.metadata.items():
                chosen.append(found)
        return chosen

    def _tuple(self, held: HeldEvents) -> CheckpointTuple | None:
        stored = held.stored
        if stored is None:
            return None
        place = stored.thread, stored.namespace
        ordered = sorted(held.writes.values(), key=lambda each: (each.path, each.task, each.index))
        values = {name: self._load(each) for name, each in stored.values.items()}
        checkpoint = {**self._load(stored.content), "channel_values": values}
        return CheckpointTuple(
            config=_config(*place, stored.checkpoint),
            checkpoint=cast("Checkpoint", checkpoint),
            metadata=self._load(stored.metadata),
            parent_config=_config(*place, stored.parent) if stored.parent else None,
            pending_writes=[(e.task, e.channel, self._load(e.content)) for e in ordered],
        )


def _place(config: RunnableConfig) -> CheckpointPlace:
    """Return the thread, namespace and checkpoint that *config* names; "" for a missing one."""
    named = config["configurable"]
    id_ = get_checkpoint_id(config) or ""
    return str(named["thread_id"]), named.get("checkpoint_ns", ""), id_


def _config(thread: str, namespace: str, checkpoint: str) -> RunnableConfig:
    named = {"thread_id": thread, "checkpoint_ns": namespace, "checkpoint_id": checkpoint}
    return {"configurable": named}
