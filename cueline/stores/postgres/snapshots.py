"""The snapshots of the sessions of a log in PostgreSQL."""

from collections.abc import Collection, Sequence
from contextlib import suppress
from typing import Final

import psycopg

from cueline.events.snapshot import EVERY
from cueline.stores.postgres.connections import Row, connect, discard
from cueline.stores.postgres.failure import translated
from cueline.stores.postgres.place import Place

_NEWEST = b"""
SELECT content FROM snapshots WHERE stream = %s AND version <= %s ORDER BY version DESC LIMIT 1
"""
_CHUNKS = b"SELECT chunk FROM snapshots WHERE stream = %s AND version <= %s ORDER BY version"
_LAST = b"SELECT max(version) FROM snapshots WHERE stream = %s"
_DROP = b"DELETE FROM snapshots WHERE stream = %s"
_KEEP = b"INSERT INTO snapshots (stream, version, content, chunk) VALUES (%s, %s, %s, %s)"
_SOURCE = b"INSERT INTO sources (source, stream) VALUES (%s, %s) ON CONFLICT DO NOTHING"
_FORGET = b"""
DELETE FROM snapshots WHERE stream IN (SELECT stream FROM sources WHERE source = ANY (%s))
"""
_FORGET_SOURCES = b"""
DELETE FROM sources WHERE stream IN (SELECT stream FROM sources WHERE source = ANY (%s))
"""
_LOCK = b"SELECT pg_advisory_xact_lock(4244, hashtext(%s))"
_HIGHEST: Final = 2**63 - 1


class PostgresSnapshots:
    """Snapshots for all processes that reach the database.

    It opens a connection for each request: sessions rest and resume seldom.
    """

    def __init__(self, place: Place, every: int = EVERY) -> None:
        self.every = every
        self._place = place

    async def newest(self, stream: str, until: int | None = None) -> bytes | None:
        """See `SnapshotStore.newest`."""
        rows = await self._look(_NEWEST, stream, until)
        return rows[0][0] if rows else None

    async def chunks(self, stream: str, until: int) -> Sequence[bytes]:
        """See `SnapshotStore.chunks`."""
        return [chunk for (chunk,) in await self._look(_CHUNKS, stream, until)]

    async def keep(
        self,
        stream: str,
        version: int,
        content: bytes,
        chunk: bytes,
        *,
        after: int,
        sources: Collection[str],
    ) -> None:
        """See `SnapshotStore.keep`."""
        with suppress(psycopg.Error):
            db = await connect(self._place)
            try:
                async with db.transaction():
                    await db.execute(_LOCK, (stream,))
                    if after == 0:
                        await db.execute(_DROP, (stream,))
                    else:
                        last = await db.execute(_LAST, (stream,))
                        if await last.fetchone() != (after,):
                            return
                    for source in sources:
                        await db.execute(_SOURCE, (source, stream))
                    await db.execute(_KEEP, (stream, version, content, chunk))
            finally:
                await discard(db)

    async def forget(self, streams: Collection[str]) -> None:
        """See `SnapshotStore.forget`."""
        try:
            db = await connect(self._place)
            try:
                async with db.transaction():
                    await db.execute(_FORGET, (list(streams),))
                    await db.execute(_FORGET_SOURCES, (list(streams),))
            finally:
                await discard(db)
        except psycopg.Error as error:
            raise translated(error, self._place) from error

    async def _look(self, statement: bytes, stream: str, until: int | None) -> list[Row]:
        """Return the rows of a query; none if it is not possible now."""
        with suppress(psycopg.Error):
            db = await connect(self._place)
            try:
                asked = (stream, _HIGHEST if until is None else until)
                cursor = await db.execute(statement, asked, binary=True)
                return await cursor.fetchall()
            finally:
                await discard(db)
        return []
