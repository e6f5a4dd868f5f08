"""The dispatcher: finds sessions with work and no living owner, gives them to a host."""

from collections.abc import Collection, Sequence
from datetime import datetime
from typing import Protocol

from cueline.actors.presence import death_of, find
from cueline.actors.session_host import HostPort
from cueline.clock import Clock
from cueline.events.store import EventStore, PresenceBoard
from cueline.events.stream import sibling

TICK_SECONDS = 1.0


class WorkIndex(Protocol):
    """Which sessions have work, as a read model knows it."""

    async def due(self, now: datetime) -> Sequence[str]:
        """Return sessions with unread messages or a deadline that has passed, nearest first."""
        ...

    async def driven(self) -> Sequence[str]:
        """Return sessions that are running or stopping: somebody should drive them."""
        ...


class Fleet(Protocol):
    """The hosts that a dispatcher has."""

    async def hosts(self) -> dict[str, HostPort]:
        """Return the living hosts by incarnation; dead ones are replaced."""
        ...


class Dispatcher:
    """Sends sessions to hosts; it keeps nothing that is not in the log.

    With a *scope* it cares for those sessions only: a dispatcher that belongs
    to one command leaves everybody else's alone.
    """

    def __init__(
        self,
        *,
        store: EventStore,
        index: WorkIndex,
        fleet: Fleet,
        board: PresenceBoard,
        clock: Clock,
        scope: Collection[str] | None = None,
    ) -> None:
        self._store = store
        self._index = index
        self._fleet = fleet
        self._board = board
        self._clock = clock
        self._scope = scope
        self._placed: dict[str, str] = {}
        """Which of our hosts a session was given to last; a hint."""

    async def run(self) -> None:
        """Look for work every second, for ever."""
        while True:
            await self.tick()
            await self._clock.sleep(TICK_SECONDS)

    async def follow_inboxes(self) -> None:
        """Pass every new message on at once, for ever; `tick` finds what this misses."""
        after = await self._store.last_position()
        async for recorded in self._store.follow(after, {"inbox"}):
            stream = sibling(recorded.stream, "session")
            if self._cares(stream):
                await self.place([stream])

    async def tick(self) -> None:
        """Give every session with work and no living owner to a host."""
        due = [s for s in await self._index.due(self._clock.now()) if self._cares(s)]
        driven = [s for s in await self._index.driven() if self._cares(s)]
        await self.place(dict.fromkeys([*due, *driven]))

    async def place(self, streams: Collection[str]) -> None:
        """Give *streams* to hosts, unless somebody else's host drives them."""
        if not streams:
            return
        hosts = await self._fleet.hosts()
        if not hosts:
            return
        batches: dict[str, list[str]] = {}
        for stream in streams:
            owner = (await self._store.head(stream)).owner
            if owner is not None and owner not in hosts and await self._lives(owner):
                continue
            batches.setdefault(self._host_for(stream, owner, hosts), []).append(stream)
        for incarnation, batch in batches.items():
            await hosts[incarnation].drive(batch)

    def _host_for(self, stream: str, owner: str | None, hosts: dict[str, HostPort]) -> str:
        """Return the host that has the session, or the one with the fewest of ours."""
        for candidate in (owner, self._placed.get(stream)):
            if candidate in hosts:
                return candidate
        loads = dict.fromkeys(hosts, 0)
        for host in self._placed.values():
            if host in loads:
                loads[host] += 1
        chosen = min(loads, key=lambda host: loads[host])
        self._placed[stream] = chosen
        return chosen

    def _cares(self, stream: str) -> bool:
        return self._scope is None or stream in self._scope

    async def _lives(self, incarnation: str) -> bool:
        presence = find(await self._board.all(), incarnation)
        return presence is not None and death_of(presence, self._clock.now()) is None
