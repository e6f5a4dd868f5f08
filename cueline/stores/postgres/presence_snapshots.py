"""The presence board and the snapshots of a log in PostgreSQL."""

from collections.abc import Collection, Sequence
from contextlib import suppress
from dataclasses import asdict, fields
from typing import Final

import psycopg

from cueline.clock import Clock
from cueline.errors import StoreError
from cueline.events.snapshot import EVERY, SnapshotRow
from cueline.events.store import Presence
from cueline.stores.postgres.address import Address
from cueline.stores.postgres.connections import Connections, Row
from cueline.stores.postgres.sql import clock_us

PRESENCE_SECONDS = 2.0
"""The longest wait for the server: the interval after which the next heartbeat is sent."""
_NAMES = [field.name for field in fields(Presence)]
_COLUMNS = ", ".join(_NAMES)
_NOW = "(extract(epoch FROM clock_timestamp()) * 1000000)::bigint"
_MARKS = ", ".join(f"coalesce(%s::bigint, {_NOW})" if n == "beat_us" else "%s" for n in _NAMES)
_SET = ", ".join(f"{name} = excluded.{name}" for name in _NAMES[1:])
_BEAT = f"""
INSERT INTO presence ({_COLUMNS}) VALUES ({_MARKS})
ON CONFLICT (incarnation) DO UPDATE SET {_SET}
"""  # noqa: S608 - the columns are ours
_LEAVE = "DELETE FROM presence WHERE incarnation = %s"
_ALL = f"SELECT {_COLUMNS} FROM present ORDER BY incarnation"  # noqa: S608 - the columns are ours


class PostgresPresence:
    """A board for all processes that reach the database; see `PresenceBoard`."""

    def __init__(self, address: Address, clock: Clock) -> None:
        self._clock = clock
        self._connections = Connections(address, 1, patience_seconds=PRESENCE_SECONDS)

    async def beat(self, presence: Presence) -> None:
        beat = {**asdict(presence), "beat_us": clock_us(self._clock)}
        await self._connections.ask(_BEAT, [beat[name] for name in _NAMES])

    async def leave(self, incarnation: str) -> None:
        await self._connections.ask(_LEAVE, (incarnation,))

    async def all(self) -> Sequence[Presence]:
        rows = await self._connections.ask(_ALL)
        return [Presence(**dict(zip(_NAMES, row, strict=True))) for row in rows]

    async def close(self) -> None:
        """Close the connection."""
        await self._connections.close()


_NEWEST = """
SELECT content FROM snapshots WHERE stream = %s AND version <= %s ORDER BY version DESC LIMIT 1
"""
_CHUNKS = "SELECT chunk FROM snapshots WHERE stream = %s AND version <= %s ORDER BY version"
_LAST = "SELECT max(version) FROM snapshots WHERE stream = %s"
_DROP = "DELETE FROM snapshots WHERE stream = %s"
_KEEP = "INSERT INTO snapshots (stream, version, content, chunk) VALUES (%s, %s, %s, %s)"
_SOURCE = "INSERT INTO sources (source, stream) VALUES (%s, %s) ON CONFLICT DO NOTHING"
_FORGET = """
WITH gone AS (
    DELETE FROM sources WHERE stream IN (SELECT stream FROM sources WHERE source = ANY (%s))
    RETURNING stream
)
DELETE FROM snapshots WHERE stream IN (SELECT stream FROM gone)
"""
_LOCK = "SELECT pg_advisory_xact_lock(4244, hashtext(%s))"
SNAPSHOT_SECONDS: Final = 2.0
"""The longest wait for a snapshot; without it, a session is folded from its first event."""
_HIGHEST: Final = 2**63 - 1


class PostgresSnapshots:
    """Snapshots for all processes that reach the database; see `SnapshotStore`."""

    def __init__(self, address: Address, every: int = EVERY) -> None:
        self.every = every
        self._connections = Connections(address, 1, patience_seconds=SNAPSHOT_SECONDS)

    async def newest(self, stream: str, until: int | None = None) -> bytes | None:
        rows = await self._look(_NEWEST, stream, until)
        return rows[0][0] if rows else None

    async def chunks(self, stream: str, until: int) -> Sequence[bytes]:
        return [chunk for (chunk,) in await self._look(_CHUNKS, stream, until)]

    async def keep(self, stream: str, row: SnapshotRow) -> None:
        with suppress(psycopg.Error, StoreError):
            async with self._connections.one() as db, db.transaction():
                await db.execute(_LOCK.encode(), (stream,))
                if row.after == 0:
                    await db.execute(_DROP.encode(), (stream,))
                else:
                    last = await db.execute(_LAST.encode(), (stream,))
                    if await last.fetchone() != (row.after,):
                        return
                for source in row.sources:
                    await db.execute(_SOURCE.encode(), (source, stream))
                await db.execute(_KEEP.encode(), (stream, *row[:3]))

    async def forget(self, streams: Collection[str]) -> None:
        await self._connections.ask(_FORGET, (list(streams),))

    async def close(self) -> None:
        """Close the connection."""
        await self._connections.close()

    async def _look(self, statement: str, stream: str, until: int | None) -> list[Row]:
        """Return the rows of a query; empty if the server is unavailable."""
        with suppress(StoreError):
            asked = (stream, _HIGHEST if until is None else until)
            return await self._connections.ask(statement, asked)
        return []
