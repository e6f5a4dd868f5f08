"""The presence board of a log in PostgreSQL."""

from collections.abc import Sequence
from dataclasses import asdict, fields

from cueline.clock import Clock
from cueline.events.store import Presence
from cueline.stores.postgres.clock import clock_us
from cueline.stores.postgres.connections import Connections
from cueline.stores.postgres.place import Place

PATIENCE_SECONDS = 2.0
"""The interval of heartbeats; a failed one is repeated at the next."""
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

    def __init__(self, place: Place, clock: Clock) -> None:
        self._clock = clock
        self._connections = Connections(place, 1, patience_seconds=PATIENCE_SECONDS)

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
