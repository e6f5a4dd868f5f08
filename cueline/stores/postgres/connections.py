"""Connections to the database of a log, which may restart or cut them off at any time.

psycopg adapts each element of a list, which takes longer than the server's work; so lists are
converted here.
"""

import asyncio
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager, suppress
from struct import Struct, pack
from time import monotonic
from typing import Any, Final, TypeAlias

import psycopg
from psycopg import AsyncConnection, pq, sql
from psycopg.adapt import Dumper

from cueline.errors import LogUnavailableError
from cueline.stores.postgres.address import Address
from cueline.stores.postgres.sql import translated, translating
from cueline.stores.waiting import pause

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
    """Let *connection* send these lists as arrays."""
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


PATIENCE_SECONDS: Final = 20.0
"""The longest wait for a restarting server."""
RETRY_SECONDS: Final = 0.1


class Retries:
    """Decides whether to retry: at once, then after pauses, until the time is over."""

    def __init__(self, patience_seconds: float) -> None:
        self._deadline = monotonic() + patience_seconds
        self._pause_seconds = 0.0

    async def again(self) -> bool:
        """Wait before each retry except the first; return False if the time is over."""
        await pause(self._pause_seconds)
        self._pause_seconds = RETRY_SECONDS
        return monotonic() < self._deadline


Row: TypeAlias = tuple[Any, ...]


@contextmanager
def connected(address: Address) -> Iterator[psycopg.Connection[Row]]:
    """Connect for a moment, without an event loop; each statement is a transaction.

    Raises:
        LogUnavailableError: the server cannot be reached, or an error occurred in the block.
    """
    with translating(address), connect_for_commands(address) as connection:
        yield connection


def connect_for_commands(address: Address) -> psycopg.Connection[Row]:
    """Return a connection without an event loop; each statement is a transaction."""
    connection = psycopg.Connection.connect(address.conninfo, autocommit=True)
    connection.execute(_search_path(address))
    return connection


async def connect(address: Address) -> psycopg.AsyncConnection[Row]:
    """Return a connection; each statement is a transaction, without a limit to its time."""
    connection = await psycopg.AsyncConnection.connect(address.conninfo, autocommit=True)
    try:
        register_arrays(connection)
        await connection.execute(_search_path(address))
    except BaseException:
        await connection.close()
        raise
    return connection


def _search_path(address: Address) -> sql.Composed:
    names = sql.Identifier(address.schema), sql.Identifier(address.beside)
    return sql.SQL("SET search_path = {}, {}").format(*names)


class Connections:
    """A pool of connections, which are opened when they are needed."""

    def __init__(
        self, address: Address, most: int, *, patience_seconds: float = PATIENCE_SECONDS
    ) -> None:
        self.address = address
        self.patience_seconds = patience_seconds
        self._free = asyncio.Semaphore(most)
        self._idle: list[psycopg.AsyncConnection[Row]] = []
        self._closed = False

    async def ask(self, statement: str, asked: Sequence[object] = ()) -> list[Row]:
        """Return the rows of a statement that may be repeated.

        Raises:
            LogUnavailableError: the server cannot be reached, or refused the statement.
            LogLostError: the log was removed.
        """
        retries = Retries(self.patience_seconds)
        while True:
            try:
                async with self.one() as connection:
                    cursor = await connection.execute(statement.encode(), asked, binary=True)
                    return await cursor.fetchall() if cursor.description else []
            except psycopg.Error as error:
                if not is_broken(error) or not await retries.again():
                    raise translated(error, self.address) from error

    @asynccontextmanager
    async def one(self) -> AsyncIterator[psycopg.AsyncConnection[Row]]:
        """Lend a connection; after an error it is not used again."""
        async with self._free:
            self._check_open()
            connection = self._idle.pop() if self._idle else await connect(self.address)
            try:
                yield connection
            except BaseException:
                await discard(connection)
                raise
            if self._closed:
                await discard(connection)
            else:
                self._idle.append(connection)

    async def close(self) -> None:
        """Close all connections; lent ones are closed when they are returned."""
        self._closed = True
        while self._idle:
            await discard(self._idle.pop())

    def _check_open(self) -> None:
        if self._closed:
            raise LogUnavailableError(self.address.name, "it was closed")


def is_broken(error: Exception) -> bool:
    """Whether the connection has ended, so that a new connection may succeed."""
    state = getattr(error, "sqlstate", None)
    broken = isinstance(error, psycopg.OperationalError | psycopg.InterfaceError)
    # 57P01-57P05: the server ends it, restarts or recovers; 08: the network.
    return broken and (state is None or state.startswith(("57P", "08")))


async def discard(connection: psycopg.AsyncConnection[Row]) -> None:
    """Close *connection*, in any state."""
    with suppress(psycopg.Error):
        await connection.close()
