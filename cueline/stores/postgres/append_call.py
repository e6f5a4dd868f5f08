"""One call of the function `append` of a log in PostgreSQL: its arguments, and its results."""

from collections.abc import Callable, Iterable, Sequence
from os import urandom

from msgspec import Struct
from msgspec.structs import astuple

from cueline.errors import (
    FencedError,
    KeyReusedError,
    MissingBlobError,
    StoreError,
    WrongExpectedVersionError,
)
from cueline.events.chain import SALT_BYTES, hash_payload, header_end
from cueline.events.store import NO_STREAM, Appended, Write
from cueline.events.stream import category_of
from cueline.stores.postgres.connections import Contents, Numbers, Row, Texts
from cueline.stores.postgres.sql import escaped


class Append(Struct, frozen=True):
    """See `EventStore.append`."""

    writes: Sequence[Write]
    key: str | None
    size: int


def arguments(appends: Sequence[Append]) -> list[object]:
    """Return the arguments after the first two, in order."""
    writes = [write for append in appends for write in append.writes]
    streams: dict[str, int] = {}
    place: Callable[[str], int] = lambda name: streams.setdefault(name, len(streams) + 1)  # noqa: E731
    forks = [(None, None) if w.after is None else (place(w.after[0]), w.after[1]) for w in writes]
    owners = [n for n, write in enumerate(writes, 1) for _ in write.events]
    drafts = [astuple(draft) for write in writes for draft in write.events]
    types, schemas, payloads, times, actors, *about, steps, named = zip(*drafts, strict=True)
    ends = map(header_end, [writes[n - 1].stream for n in owners], types, actors, *about)
    sizes = [sum(len(write.events) for write in append.writes) for append in appends]
    salts = [urandom(SALT_BYTES) for _ in drafts]
    blobs = [(n, blob) for n, blobs in enumerate(named, 1) for blob in blobs]
    empties = [(n, *event) for n, write in enumerate(writes, 1) for event in write.empties]
    firsts = [place(append.writes[0].stream) for append in appends]
    places = [place(write.stream) for write in writes]
    return [
        Texts(streams),
        Texts(map(category_of, streams)),
        _escaped(append.key for append in appends),
        Numbers(firsts),
        Numbers(len(append.writes) for append in appends),
        Numbers(places),
        Numbers(write.expected_version for write in writes),
        Numbers(write.epoch for write in writes),
        Numbers(parent for parent, _ in forks),
        Numbers(version for _, version in forks),
        Numbers(len(write.events) for write in writes),
        Numbers(owners),
        Numbers(seq for size in sizes for seq in range(size)),
        _escaped(types),
        Numbers(schemas),
        Contents(payloads),
        Numbers(times),
        _escaped(actors),
        *map(_escaped, about),
        Numbers(steps),
        Contents(ends),
        Contents(salts),
        Contents(map(hash_payload, salts, payloads)),
        Numbers(n for n, _ in blobs),
        Texts(blob for _, blob in blobs),
        Numbers(n for n, _, _ in empties),
        Texts(stream for _, stream, _ in empties),
        Numbers(version for _, _, version in empties),
    ]


def _escaped(texts: Iterable[str | None]) -> Texts:
    return Texts(None if text is None else escaped(text) for text in texts)


def result_of(append: Append, row: Row) -> Appended | StoreError:
    """Return what a row of the answer says of *append*."""
    status, place, there, versions, position, recorded_us = row
    match status:
        case "appended":
            return Appended(tuple(versions), position, recorded_us)
        case "reused":
            first = append.writes[0]
            unnamed = f"{first.epoch}.{first.expected_version}"
            return KeyReusedError(first.stream, unnamed if append.key is None else append.key)
        case "blob":
            named = [(w.stream, b) for w in append.writes for d in w.events for b in d.blobs]
            return MissingBlobError(*named[place - 1])
        case _:
            return _refusal(append.writes[place - 1], status, there)


def _refusal(write: Write, status: str, there: int) -> StoreError:
    match status:
        case "fenced":
            return FencedError(write.stream, write.epoch, there)
        case "begun":
            return WrongExpectedVersionError(write.stream, NO_STREAM, there)
        case "parent":
            assert write.after is not None
            return WrongExpectedVersionError(*write.after, there)
        case _:
            return WrongExpectedVersionError(write.stream, write.expected_version, there)
