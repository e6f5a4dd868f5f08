"""Arrays as PostgreSQL's binary protocol has them.

psycopg adapts each element by itself, which takes longer than the server needs for it.
"""

from collections.abc import Sequence
from struct import Struct, pack
from typing import Final

from psycopg import AsyncConnection, pq
from psycopg.adapt import Dumper

_NULL: Final = pack("!i", -1)
_LENGTH: Final = Struct("!i")
_NUMBER: Final = Struct("!iq")
_HEAD: Final = Struct("!iiIii")
_INT8, _TEXT, _BYTEA = 20, 25, 17


class Numbers(list[int | None]):
    """A `bigint[]`."""


class Texts(list[str | None]):
    """A `text[]`."""


class Contents(list[bytes | None]):
    """A `bytea[]`."""


class _NumbersDumper(Dumper):
    format = pq.Format.BINARY
    oid = 1016

    def dump(self, obj: Numbers) -> bytes:
        return _array(_INT8, [_NULL if each is None else _NUMBER.pack(8, each) for each in obj])


class _TextsDumper(Dumper):
    format = pq.Format.BINARY
    oid = 1009

    def dump(self, obj: Texts) -> bytes:
        return _array(_TEXT, [_element(None if each is None else each.encode()) for each in obj])


class _ContentsDumper(Dumper):
    format = pq.Format.BINARY
    oid = 1001

    def dump(self, obj: Contents) -> bytes:
        return _array(_BYTEA, [_element(each) for each in obj])


def register_arrays(connection: AsyncConnection[tuple[object, ...]]) -> None:
    """Have *connection* send these lists as arrays."""
    adapters = connection.adapters
    adapters.register_dumper(Numbers, _NumbersDumper)
    adapters.register_dumper(Texts, _TextsDumper)
    adapters.register_dumper(Contents, _ContentsDumper)


def _element(content: bytes | None) -> bytes:
    return _NULL if content is None else _LENGTH.pack(len(content)) + content


def _array(oid: int, elements: Sequence[bytes]) -> bytes:
    if not elements:
        return pack("!iiI", 0, 0, oid)
    return _HEAD.pack(1, 1, oid, len(elements), 1) + b"".join(elements)
