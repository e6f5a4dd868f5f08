"""The threads of LangGraph in a log: which events hold their checkpoints and writes."""

import json
from collections.abc import Collection, Mapping, Sequence
from hashlib import sha256
from typing import Any
from uuid import uuid4

from cueline.errors import InvalidNameError, WrongExpectedVersionError
from cueline.events.checkpoint import (
    CheckpointDeleted,
    CheckpointListed,
    CheckpointStored,
    ThreadDeleted,
    WriteStored,
)
from cueline.events.codec import Redacted
from cueline.events.fact import Fact
from cueline.events.journal import FactWrite, Journal
from cueline.events.store import ANY, EventStore, Head
from cueline.events.stream import stream_name, tenant_of

CheckpointPlace = tuple[str, str, str]
"""Thread, namespace and id of a checkpoint."""
CATEGORY = "checkpoint"
_ACTOR = "agent:langgraph"


class ThreadLog:
    """The streams of one tenant's threads: one for each checkpoint, one for each namespace.

    The stream of a namespace lists its checkpoints.
    """

    def __init__(self, store: EventStore, journal: Journal, tenant: str) -> None:
        self._store, self._journal, self._tenant = store, journal, tenant

    async def append(
        self, place: CheckpointPlace, facts: Sequence[CheckpointStored | WriteStored]
    ) -> None:
        """Append *facts* at any version, because facts of two writers are valid in either order."""
        stream = self._stream(*place)
        while facts:
            writes = [_write(stream, facts, ANY)]
            is_stored = isinstance(facts[0], CheckpointStored)
            if is_stored or _is_over((await self._last(stream))[1]):
                writes += await self._listing(place, is_stored=is_stored)
            if await self._commit(writes):
                return

    async def delete_thread(self, thread: str) -> None:
        """Redact all events of a thread."""
        while True:
            streams = await self._streams(thread)
            heads = await self._store.heads(streams)
            # A checkpoint that is listed after the heads were read makes the append conflict.
            if streams == await self._streams(thread):
                facts = dict.fromkeys(streams, ThreadDeleted(thread=thread))
                writes = _emptying(heads, facts)
                if not writes or await self._commit(writes):
                    return

    def _stream(self, thread: str, namespace: str = "", checkpoint: str = "") -> str:
        """Return the stream of a checkpoint; without an id, the stream of its namespace.

        Ids that cannot be in a stream's name are hashed.
        """
        if namespace or checkpoint:
            place = json.dumps([thread, namespace, checkpoint])
            hashed = f"place.{sha256(place.encode()).hexdigest()}"
            return stream_name(CATEGORY, hashed, self._tenant)
        try:
            return stream_name(CATEGORY, thread, self._tenant)
        except InvalidNameError:
            hashed = f"sha256.{sha256(thread.encode()).hexdigest()}"
            return stream_name(CATEGORY, hashed, self._tenant)

    async def _commit(self, writes: Sequence[FactWrite]) -> bool:
        """Append *writes*; return False if a stream has new events."""
        try:
            await self._journal.append(writes, str(uuid4()))
        except WrongExpectedVersionError:
            return False
        return True

    async def _listing(self, place: CheckpointPlace, *, is_stored: bool) -> Sequence[FactWrite]:
        """Return the facts that list a checkpoint, and its namespace if the namespace is new."""
        thread, namespace, checkpoint = place
        writes = []
        for space in dict.fromkeys([namespace, ""]):
            stream = self._stream(thread, space)
            version, last = await self._last(stream)
            newest = _newest(last)
            if is_stored and space == namespace:
                newest = max(newest, checkpoint)
            listed = CheckpointListed(**place_fields(place), newest=newest)
            writes.append(_write(stream, [listed], version))
            if not _is_over(last):
                break
        return writes

    async def newest(self, thread: str, namespace: str) -> str:
        """Return the newest checkpoint of a namespace; "" if the namespace has no checkpoint."""
        return _newest((await self._last(self._stream(thread, namespace)))[1])

    async def _last(self, stream: str) -> tuple[int, Fact | Redacted | None]:
        """Return the version and fact of a stream's last event; 0 and None if it is empty."""
        version, last = (await self._store.head(stream)).version, None
        if version:
            async for recorded, fact in self._journal.read(stream, version - 1):
                version, last = recorded.version, fact
        return version, last

    async def _streams(self, thread: str) -> set[str]:
        checkpoints = {self._stream(*place) for place in await self.places(thread)}
        return checkpoints | {self._stream(thread, each) for each in await self.namespaces(thread)}

    async def delete(self, thread: str, namespace: str, ids: Collection[str]) -> None:
        """Delete these checkpoints of a namespace."""
        index = self._stream(thread, namespace)
        while True:
            version, last = await self._last(index)
            places = await self.places(thread, namespace)
            gone = [place for place in places if place[2] in ids]
            if not gone:
                return
            newest = _newest(last)
            if newest in ids:
                kept = sorted(place for place in places if place not in gone)
                while kept and not (await self.read(kept[-1])).stored:
                    kept.pop()
                newest = kept[-1][2] if kept else ""
            facts: dict[str, Fact] = {
                self._stream(*place): CheckpointDeleted(**place_fields(place), newest=newest)
                for place in gone
            }
            unlisted = _write(index, [*facts.values()], version)
            if await self._commit([unlisted, *_emptying(await self._store.heads(facts), facts)]):
                return

    async def read(self, place: CheckpointPlace) -> "HeldEvents":
        """Return the content of the stream of a checkpoint."""
        held = HeldEvents()
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

    async def namespaces(self, thread: str) -> Sequence[str]:
        """Return the namespaces of a thread, sorted; the first is "", the root namespace."""
        return sorted({"", *(space for space, _ in await self._listed(thread, ""))})

    async def places(self, thread: str, namespace: str | None = None) -> Sequence[CheckpointPlace]:
        """Return the checkpoints of a thread, in one namespace or in all."""
        spaces = await self.namespaces(thread) if namespace is None else [namespace]
        return [
            (thread, space, id_)
            for space in spaces
            for listed, id_ in await self._listed(thread, space)
            if listed == space
        ]

    async def threads(self) -> Sequence[str]:
        """Return the threads of this tenant, in the order of their first checkpoints."""
        threads: dict[str, None] = {}
        async for recorded in self._store.read_all(categories=[CATEGORY]):
            if recorded.type == "CheckpointListed" and tenant_of(recorded.stream) == self._tenant:
                fact = await self._journal.fact_of(recorded)
                if isinstance(fact, CheckpointListed):
                    threads[fact.thread] = None
        return tuple(threads)


class HeldEvents:
    """The content of the stream of a checkpoint."""

    def __init__(self) -> None:
        self.stored: CheckpointStored | None = None
        self.writes: dict[tuple[str, int], WriteStored] = {}

    def add(self, fact: Fact | Redacted) -> None:
        """Apply the next fact of the stream."""
        match fact:
            case CheckpointStored():
                self.stored = fact
            case WriteStored(task=task, index=index):
                if index < 0 or (task, index) not in self.writes:
                    self.writes[task, index] = fact
            case CheckpointDeleted() | ThreadDeleted():
                self.stored = None
                self.writes.clear()


def place_fields(place: CheckpointPlace) -> dict[str, Any]:
    """Return *place* as the fields of a fact."""
    return dict(zip(("thread", "namespace", "checkpoint"), place, strict=True))


def _write(
    stream: str, facts: Sequence[Fact], version: int, empties: Sequence[tuple[str, int]] = ()
) -> FactWrite:
    return FactWrite(stream, [facts], version, actor=_ACTOR, empties=empties)


def _emptying(heads: Mapping[str, Head], deleted: Mapping[str, Fact]) -> Sequence[FactWrite]:
    """Return the writes that redact the streams with *heads*, and append *deleted* to them."""
    writes = []
    for stream, head in heads.items():
        if events := [(stream, version) for version in range(1, head.version + 1)]:
            writes.append(_write(stream, [deleted[stream]], head.version, events))
    return writes


def _is_over(last: Fact | Redacted | None) -> bool:
    """Whether a stream with this *last* event has no content."""
    return last is None or isinstance(last, CheckpointDeleted | ThreadDeleted)


def _newest(last: Fact | Redacted | None) -> str:
    """Return the newest checkpoint of a namespace whose stream has this last event."""
    return last.newest if isinstance(last, CheckpointListed | CheckpointDeleted) else ""
