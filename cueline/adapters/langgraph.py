"""A checkpointer of LangGraph that stores the threads of graphs in a cueline log."""

import asyncio
import builtins
import json
import threading
from base64 import b64decode, b64encode
from collections import defaultdict
from collections.abc import (
    AsyncIterator,
    Callable,
    Collection,
    Coroutine,
    Iterator,
    Mapping,
    Sequence,
)
from concurrent.futures import Future
from functools import wraps
from hashlib import sha256
from operator import itemgetter
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
from cueline.events.checkpoint import (
    CheckpointDeleted,
    CheckpointListed,
    CheckpointStored,
    ThreadDeleted,
    WriteStored,
)
from cueline.events.codec import Codec, Redacted
from cueline.events.fact import Fact
from cueline.events.journal import FactWrite, Journal
from cueline.events.log_url import LogName
from cueline.events.store import ANY, Head
from cueline.events.stream import DEFAULT_TENANT, stream_name, tenant_of
from cueline.stores.backend import backend_of

T = TypeVar("T")
Place = tuple[str, str, str]
"""Thread, namespace and id of a checkpoint."""
_CATEGORY = "checkpoint"
_ACTOR = "agent:langgraph"
_STRATEGIES = ("keep_latest", "delete")


Work = Callable[..., Coroutine[Any, Any, T]]


def _on_own_loop(work: Work[T]) -> Work[T]:
    """Return a method that runs *work* in the saver's event loop."""
    return wraps(work)(lambda self, *a, **named: self._run(work(self, *a, **named)))


def _blocking(work: Work[T]) -> Callable[..., T]:
    """Return a method that waits for *work*, from any thread."""
    return wraps(work)(
        lambda self, *args, **named: self._begin(work(self, *args, **named)).result()
    )


class CuelineSaver(BaseCheckpointSaver[int]):
    """Stores the checkpoints of LangGraph in *log*: a path, a URL of PostgreSQL, or `memory:`.

    Each method returns when its events are durable. A repeated put or write changes
    nothing. The saver uses the log in a thread of its own, so one saver serves graphs in
    any number of threads and event loops. `close` the saver, or use it in a `with`.
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
        id_ = id_ or _newest((await self._last(self._stream(thread, namespace)))[1])
        return self._tuple(await self._read((thread, namespace, id_))) if id_ else None

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
        """Store *checkpoint*; replace one with the same id; return the config that names it."""
        fact = self._stored(config, checkpoint, metadata)
        await self._run(self._append((fact.thread, fact.namespace, fact.checkpoint), [fact]))
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
        await self._run(self._append(_place(config), facts))

    @_on_own_loop
    async def adelete_thread(self, thread_id: str) -> None:
        """Delete the thread: its events stay, without their content."""
        while True:
            streams = await self._streams(thread_id)
            heads = await self._store.heads(streams)
            # What is listed after the heads were read conflicts with them.
            if streams == await self._streams(thread_id):
                facts = dict.fromkeys(streams, ThreadDeleted(thread=thread_id))
                writes = _emptying(heads, facts)
                if not writes or await self._commit(writes):
                    return

    @_on_own_loop
    async def adelete_for_runs(self, run_ids: Sequence[str]) -> None:
        """Delete the checkpoints of these runs, and their writes, in all threads."""
        for thread in await self._threads() if run_ids else ():
            found = defaultdict[str, set[str]](set)
            for place in await self._places(thread):
                stored = (await self._read(place)).stored
                if stored and self._load(stored.metadata).get("run_id") in run_ids:
                    found[place[1]].add(place[2])
            for space, ids in found.items():
                await self._delete(thread, space, ids)

    @_on_own_loop
    async def acopy_thread(self, source_thread_id: str, target_thread_id: str) -> None:
        """Copy all checkpoints and writes of a thread into another."""
        for place in sorted(await self._places(source_thread_id)):
            held = await self._read(place)
            for facts in [held.stored] if held.stored else [], list(held.writes.values()):
                copied = [fact.model_copy(update={"thread": target_thread_id}) for fact in facts]
                await self._append((target_thread_id, *place[1:]), copied)

    @_on_own_loop
    async def aprune(self, thread_ids: Sequence[str], *, strategy: str = "keep_latest") -> None:
        """Delete all but the newest checkpoint of each namespace; with "delete", also the newest.

        Checkpoints from which the newest builds a `DeltaChannel` stay.

        Raises:
            ValueError: the strategy is unknown.
        """
        if strategy not in _STRATEGIES:
            raise ValueError(f"strategy is {strategy!r}; known are {', '.join(_STRATEGIES)}")
        for thread in thread_ids:
            if strategy == "delete":
                await self.adelete_thread(thread)
                continue
            for space in await self._namespaces(thread):
                # First: what is put meanwhile stays.
                ids = {id_ for _, _, id_ in await self._places(thread, space)}
                await self._delete(thread, space, ids - await self._needed(thread, space))

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

    def _stream(self, thread: str, namespace: str = "", checkpoint: str = "") -> str:
        """Return the stream of a checkpoint, or else the one that lists those of a namespace.

        Ids that cannot be in a stream's name are hashed.
        """
        if namespace or checkpoint:
            place = json.dumps([thread, namespace, checkpoint])
            hashed = f"place.{sha256(place.encode()).hexdigest()}"
            return stream_name(_CATEGORY, hashed, self._tenant)
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
        return [
            WriteStored(
                **_names(_place(config)),
                task=task,
                path=path,
                index=WRITES_IDX_MAP.get(channel, index),
                channel=channel,
                content=self._dump(value),
            )
            for index, (channel, value) in enumerate(writes)
        ]

    async def _append(self, place: Place, facts: Sequence[CheckpointStored | WriteStored]) -> None:
        """Append *facts* at any version: those of two writers hold in either order."""
        stream = self._stream(*place)
        while facts:
            writes = [_write(stream, facts, ANY)]
            is_stored = isinstance(facts[0], CheckpointStored)
            if is_stored or _is_over((await self._last(stream))[1]):
                writes += await self._listing(place, is_stored=is_stored)
            if await self._commit(writes):
                return

    async def _commit(self, writes: Sequence[FactWrite]) -> bool:
        """Append *writes*; return False if a stream has new events."""
        try:
            await self._journal.append(writes, str(uuid4()))
        except WrongExpectedVersionError:
            return False
        return True

    async def _listing(self, place: Place, *, is_stored: bool) -> Sequence[FactWrite]:
        """Return what lists a checkpoint, and its namespace if that is new."""
        thread, namespace, checkpoint = place
        writes = []
        for space in dict.fromkeys([namespace, ""]):
            stream = self._stream(thread, space)
            version, last = await self._last(stream)
            newest = _newest(last)
            if is_stored and space == namespace:
                newest = max(newest, checkpoint)
            listed = CheckpointListed(**_names(place), newest=newest)
            writes.append(_write(stream, [listed], version))
            if not _is_over(last):
                break
        return writes

    async def _last(self, stream: str) -> tuple[int, Fact | Redacted | None]:
        """Return the version and fact of a stream's last event; 0 and None without one."""
        version, last = (await self._store.head(stream)).version, None
        if version:
            async for recorded, fact in self._journal.read(stream, version - 1):
                version, last = recorded.version, fact
        return version, last

    async def _streams(self, thread: str) -> set[str]:
        checkpoints = {self._stream(*place) for place in await self._places(thread)}
        return checkpoints | {self._stream(thread, each) for each in await self._namespaces(thread)}

    async def _delete(self, thread: str, namespace: str, ids: Collection[str]) -> None:
        """Delete these checkpoints of a namespace."""
        index = self._stream(thread, namespace)
        while True:
            version, last = await self._last(index)
            places = await self._places(thread, namespace)
            gone = [place for place in places if place[2] in ids]
            if not gone:
                return
            newest = _newest(last)
            if newest in ids:
                kept = sorted(place for place in places if place not in gone)
                while kept and not (await self._read(kept[-1])).stored:
                    kept.pop()
                newest = kept[-1][2] if kept else ""
            facts: dict[str, Fact] = {
                self._stream(*place): CheckpointDeleted(**_names(place), newest=newest)
                for place in gone
            }
            unlisted = _write(index, [*facts.values()], version)
            if await self._commit([unlisted, *_emptying(await self._store.heads(facts), facts)]):
                return

    async def _needed(self, thread: str, namespace: str) -> set[str]:
        """Return the newest checkpoint, and those before it that hold some of its values."""
        kept: set[str] = set()
        id_ = _newest((await self._last(self._stream(thread, namespace)))[1])
        while stored := (await self._read((thread, namespace, id_))).stored:
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
        threads = [_place(config)[0]] if config else await self._threads()
        namespace = config["configurable"].get("checkpoint_ns") if config else None
        only = get_checkpoint_id(config) if config else None
        end = get_checkpoint_id(before) if before else None
        places = [place for thread in threads for place in await self._places(thread, namespace)]
        chosen: builtins.list[CheckpointTuple] = []
        for place in sorted(places, key=itemgetter(2), reverse=True):
            if limit is not None and len(chosen) >= limit:
                break
            if only not in {None, place[2]} or (end and place[2] >= end):
                continue
            found = self._tuple(await self._read(place))
            if found and (filter or {}).items() <= found.metadata.items():
                chosen.append(found)
        return chosen

    async def _read(self, place: Place) -> "_Held":
        held = _Held()
        async for _, fact in self._journal.read(self._stream(*place)):
            held.add(fact)
        return held

    async def _listed(self, thread: str, namespace: str) -> set[tuple[str, str]]:
        """Return the namespaces and ids that the stream of a namespace lists."""
        listed: set[tuple[str, str]] = set()
        async for _, fact in self._journal.read(self._stream(thread, namespace)):
            match fact:
                case CheckpointListed():
                    listed.add((fact.namespace, fact.checkpoint))
                case CheckpointDeleted():
                    listed.discard((fact.namespace, fact.checkpoint))
        return listed

    async def _namespaces(self, thread: str) -> Sequence[str]:
        return sorted({"", *(space for space, _ in await self._listed(thread, ""))})

    async def _places(self, thread: str, namespace: str | None = None) -> Sequence[Place]:
        """Return the checkpoints of a thread, in one namespace or in all."""
        spaces = await self._namespaces(thread) if namespace is None else [namespace]
        return [
            (thread, space, id_)
            for space in spaces
            for listed, id_ in await self._listed(thread, space)
            if listed == space
        ]

    async def _threads(self) -> Sequence[str]:
        threads: dict[str, None] = {}
        async for recorded in self._store.read_all(categories=[_CATEGORY]):
            if recorded.type == "CheckpointListed" and tenant_of(recorded.stream) == self._tenant:
                fact = await self._journal.fact_of(recorded)
                if isinstance(fact, CheckpointListed):
                    threads[fact.thread] = None
        return tuple(threads)

    def _tuple(self, held: "_Held") -> CheckpointTuple | None:
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


class _Held:
    """What the stream of a checkpoint holds."""

    def __init__(self) -> None:
        self.stored: CheckpointStored | None = None
        self.writes: dict[tuple[str, int], WriteStored] = {}

    def add(self, fact: Fact | Redacted) -> None:
        match fact:
            case CheckpointStored():
                self.stored = fact
            case WriteStored(task=task, index=index):
                if index < 0 or (task, index) not in self.writes:
                    self.writes[task, index] = fact
            case CheckpointDeleted() | ThreadDeleted():
                self.stored = None
                self.writes.clear()


def _names(place: Place) -> dict[str, Any]:
    return dict(zip(("thread", "namespace", "checkpoint"), place, strict=True))


def _write(
    stream: str, facts: Sequence[Fact], version: int, empties: Sequence[tuple[str, int]] = ()
) -> FactWrite:
    return FactWrite(stream, [facts], version, actor=_ACTOR, empties=empties)


def _emptying(heads: Mapping[str, Head], deleted: Mapping[str, Fact]) -> Sequence[FactWrite]:
    """Return what empties the streams with *heads*; after it, each has what *deleted* says."""
    writes = []
    for stream, head in heads.items():
        if events := [(stream, version) for version in range(1, head.version + 1)]:
            writes.append(_write(stream, [deleted[stream]], head.version, events))
    return writes


def _is_over(last: Fact | Redacted | None) -> bool:
    """Whether a stream with this last event holds nothing."""
    return last is None or isinstance(last, CheckpointDeleted | ThreadDeleted)


def _newest(last: Fact | Redacted | None) -> str:
    """Return the newest checkpoint of a namespace whose stream has this last event."""
    return last.newest if isinstance(last, CheckpointListed | CheckpointDeleted) else ""


def _place(config: RunnableConfig) -> Place:
    """Return the thread, namespace and checkpoint that *config* names; "" for none."""
    named = config["configurable"]
    id_ = get_checkpoint_id(config) or ""
    return str(named["thread_id"]), named.get("checkpoint_ns", ""), id_


def _config(thread: str, namespace: str, checkpoint: str) -> RunnableConfig:
    named = {"thread_id": thread, "checkpoint_ns": namespace, "checkpoint_id": checkpoint}
    return {"configurable": named}
