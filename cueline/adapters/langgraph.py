"""A checkpointer of LangGraph that stores the threads of graphs in a cueline log."""

import asyncio
import threading
from base64 import b64decode, b64encode
from collections.abc import AsyncIterator, Coroutine, Iterator, Sequence
from concurrent.futures import Future
from hashlib import sha256
from typing import Any, Self, TypeVar, cast
from uuid import uuid4

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

from cueline.clock import SystemClock
from cueline.errors import InvalidNameError, WrongExpectedVersionError
from cueline.events.checkpoint import CheckpointStored, ThreadDeleted, WriteStored
from cueline.events.codec import Codec, Redacted
from cueline.events.fact import Fact
from cueline.events.journal import FactWrite, Journal, Unreadable
from cueline.events.log_url import LogName
from cueline.events.store import ANY
from cueline.events.stream import DEFAULT_TENANT, stream_name, tenant_of
from cueline.stores.backend import backend_of

T = TypeVar("T")
_CATEGORY = "checkpoint"
_ACTOR = "agent:langgraph"


class CuelineSaver(BaseCheckpointSaver[int]):
    """Stores checkpoints in the log *log*: a path, a URL of PostgreSQL, or `memory:`.

    Each method returns when its events are durable. A put or write that is repeated
    changes nothing. The log is used from an own thread, so one saver serves graphs in
    any number of threads and event loops. `close` it, or use it in a `with`.
    A put or write raises what `EventStore.append` raises: invoke the graph again.

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
        stream_name(_CATEGORY, "thread", tenant)
        self._tenant = tenant
        clock = SystemClock()
        self._loop = asyncio.new_event_loop()
        self._store = backend_of(log).open(clock)
        self._journal = Journal(self._store, Codec(), clock.now)
        self._thread = threading.Thread(
            target=self._loop.run_forever, name="cueline-saver", daemon=True
        )
        self._thread.start()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the log; the saver cannot be used any more."""
        if self._loop.is_closed():
            return
        self._begin(self._store.close()).result()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    async def aget_tuple(self, config: RunnableConfig) -> CheckpointTuple | None:
        """Return the checkpoint that *config* names, or the thread's newest; None without one."""
        return await self._run(self._get(config))

    async def alist(
        self,
        config: RunnableConfig | None,
        *,
        filter: dict[str, Any] | None = None,  # noqa: A002 - LangGraph's name
        before: RunnableConfig | None = None,
        limit: int | None = None,
    ) -> AsyncIterator[CheckpointTuple]:
        """Read the checkpoints of the thread of *config*, or of all threads, newest first.

        *filter* has values of the metadata.
        """
        for each in await self._run(self._list(config, filter or {}, before, limit)):
            yield each

    async def aput(
        self,
        config: RunnableConfig,
        checkpoint: Checkpoint,
        metadata: CheckpointMetadata,
        new_versions: ChannelVersions,  # noqa: ARG002 - each checkpoint is stored whole
    ) -> RunnableConfig:
        """Store *checkpoint*, in place of one with its id; return the config that names it."""
        fact = self._stored(config, checkpoint, metadata)
        await self._run(self._append([fact]))
        return _config(fact.thread, fact.namespace, fact.checkpoint)

    async def aput_writes(
        self,
        config: RunnableConfig,
        writes: Sequence[tuple[str, Any]],
        task_id: str,
        task_path: str = "",
    ) -> None:
        """Store what the task wrote after the checkpoint of *config*."""
        await self._run(self._append(self._written(config, writes, task_id, task_path)))

    async def adelete_thread(self, thread_id: str) -> None:
        """Delete the thread: its events stay, without what they held."""
        await self._run(self._delete(thread_id))

    def get_tuple(self, config: RunnableConfig) -> CheckpointTuple | None:
        """See `aget_tuple`."""
        return self._begin(self._get(config)).result()

    def list(
        self,
        config: RunnableConfig | None,
        *,
        filter: dict[str, Any] | None = None,  # noqa: A002 - as above
        before: RunnableConfig | None = None,
        limit: int | None = None,
    ) -> Iterator[CheckpointTuple]:
        """See `alist`."""
        yield from self._begin(self._list(config, filter or {}, before, limit)).result()

    def put(self, *args: Any, **named: Any) -> RunnableConfig:
        """See `aput`."""
        return self._begin(self.aput(*args, **named)).result()

    def put_writes(self, *args: Any, **named: Any) -> None:
        """See `aput_writes`."""
        self._begin(self.aput_writes(*args, **named)).result()

    def delete_thread(self, thread_id: str) -> None:
        """See `adelete_thread`."""
        self._begin(self._delete(thread_id)).result()

    async def _run(self, work: Coroutine[Any, Any, T]) -> T:
        return await asyncio.wrap_future(self._begin(work))

    def _begin(self, work: Coroutine[Any, Any, T]) -> "Future[T]":
        return asyncio.run_coroutine_threadsafe(work, self._loop)

    def _stream(self, thread: str) -> str:
        """Return the thread's stream; ids that cannot be in a stream's name are hashed."""
        try:
            return stream_name(_CATEGORY, thread, self._tenant)
        except InvalidNameError:
            hashed = f"sha256.{sha256(thread.encode()).hexdigest()}"
            return stream_name(_CATEGORY, hashed, self._tenant)

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
        thread, namespace, checkpoint = _place(config)
        return [
            WriteStored(
                thread=thread,
                namespace=namespace,
                checkpoint=checkpoint,
                task=task,
                path=path,
                index=WRITES_IDX_MAP.get(channel, index),
                channel=channel,
                content=self._dump(value),
            )
            for index, (channel, value) in enumerate(writes)
        ]

    async def _append(self, facts: Sequence[CheckpointStored | WriteStored]) -> None:
        """Append *facts* at any version: those of two writers hold in either order."""
        if facts:
            write = FactWrite(self._stream(facts[0].thread), [facts], ANY, actor=_ACTOR)
            await self._journal.append([write], str(uuid4()))

    async def _delete(self, thread: str) -> None:
        stream = self._stream(thread)
        while head := (await self._store.head(stream)).version:
            events = tuple((stream, version) for version in range(1, head + 1))
            deleted = [[ThreadDeleted(thread=thread)]]
            write = FactWrite(stream, deleted, head, actor=_ACTOR, empties=events)
            try:
                await self._journal.append([write], str(uuid4()))
            except WrongExpectedVersionError:
                continue
            return

    async def _get(self, config: RunnableConfig) -> CheckpointTuple | None:
        thread, namespace, checkpoint = _place(config)
        found = await self._read(thread)
        ids = (id_ for space, id_ in found.checkpoints if space == namespace)
        stored = found.checkpoints.get((namespace, checkpoint or max(ids, default="")))
        return self._tuple(stored, found) if stored else None

    async def _list(
        self,
        config: RunnableConfig | None,
        wanted: dict[str, Any],
        before: RunnableConfig | None,
        limit: int | None,
    ) -> Sequence[CheckpointTuple]:
        threads = [await self._read(_place(config)[0])] if config else await self._read_all()
        namespace = config["configurable"].get("checkpoint_ns") if config else None
        only = get_checkpoint_id(config) if config else None
        end = get_checkpoint_id(before) if before else None
        chosen = [
            (stored, thread)
            for thread in threads
            for stored in thread.checkpoints.values()
            if namespace in {None, stored.namespace}
            and only in {None, stored.checkpoint}
            and (not end or stored.checkpoint < end)
            and wanted.items() <= self._load(stored.metadata).items()
        ]
        chosen.sort(key=lambda pair: pair[0].checkpoint, reverse=True)
        return [self._tuple(*pair) for pair in chosen[:limit]]

    async def _read(self, thread: str) -> "_Thread":
        found = _Thread()
        async for _, fact in self._journal.read(self._stream(thread)):
            found.add(fact)
        return found

    async def _read_all(self) -> "Sequence[_Thread]":
        threads: dict[str, _Thread] = {}
        async for recorded, fact in self._journal.read_all(categories=[_CATEGORY]):
            if isinstance(fact, Unreadable):
                raise fact.error
            if tenant_of(recorded.stream) == self._tenant:
                threads.setdefault(recorded.stream, _Thread()).add(fact)
        return tuple(threads.values())

    def _tuple(self, stored: CheckpointStored, thread: "_Thread") -> CheckpointTuple:
        place = stored.thread, stored.namespace
        written = thread.writes.get((stored.namespace, stored.checkpoint), {}).values()
        ordered = sorted(written, key=lambda each: (each.path, each.task, each.index))
        values = {name: self._load(each) for name, each in stored.values.items()}
        checkpoint = {**self._load(stored.content), "channel_values": values}
        return CheckpointTuple(
            config=_config(*place, stored.checkpoint),
            checkpoint=cast("Checkpoint", checkpoint),
            metadata=self._load(stored.metadata),
            parent_config=_config(*place, stored.parent) if stored.parent else None,
            pending_writes=[(e.task, e.channel, self._load(e.content)) for e in ordered],
        )


class _Thread:
    """What a thread's events say, by namespace and checkpoint."""

    def __init__(self) -> None:
        self.checkpoints: dict[tuple[str, str], CheckpointStored] = {}
        self.writes: dict[tuple[str, str], dict[tuple[str, int], WriteStored]] = {}

    def add(self, fact: Fact | Redacted) -> None:
        match fact:
            case CheckpointStored():
                self.checkpoints[fact.namespace, fact.checkpoint] = fact
            case WriteStored():
                of_tasks = self.writes.setdefault((fact.namespace, fact.checkpoint), {})
                key = fact.task, fact.index
                if fact.index < 0 or key not in of_tasks:
                    of_tasks[key] = fact
            case ThreadDeleted():
                self.checkpoints.clear()
                self.writes.clear()


def _place(config: RunnableConfig) -> tuple[str, str, str]:
    """Return the thread, namespace and checkpoint that *config* names; "" for none."""
    named = config["configurable"]
    id_ = get_checkpoint_id(config) or ""
    return str(named["thread_id"]), named.get("checkpoint_ns", ""), id_


def _config(thread: str, namespace: str, checkpoint: str) -> RunnableConfig:
    named = {"thread_id": thread, "checkpoint_ns": namespace, "checkpoint_id": checkpoint}
    return {"configurable": named}
