"""The dispatcher: assigns sessions with work and no living owner to hosts."""

from collections.abc import AsyncIterator, Collection, Container, Mapping, Sequence
from datetime import datetime
from hashlib import sha256
from typing import NamedTuple, Protocol

from cueline.actors.presence import living
from cueline.actors.rest_cache import RestCache
from cueline.actors.session_host import HostPort
from cueline.clock import Clock
from cueline.deciders.matching import Unmet
from cueline.errors import HostsFullError
from cueline.events.child import parent_of
from cueline.events.codec import Codec
from cueline.events.journal import Journal
from cueline.events.session import WaitKind
from cueline.events.store import EventStore, PresenceBoard
from cueline.events.stream import category_of, sibling

TICK_SECONDS = 1.0


class Work(NamedTuple):
    """A session with work."""

    stream: str
    unread: bool
    """Whether its inbox holds unread messages."""


class WorkIndex(Protocol):
    """Finds the sessions with work in a read model."""

    def due(self, now: datetime) -> AsyncIterator[Sequence[Work]]:
        """Return the sessions with work in pages, nearest deadline first.

        These have unread messages, or a deadline that has passed, or are running or
        stopping, with or without a driver.
        """
        ...

    async def driven(self) -> Sequence[str]:
        """Return the sessions that are running or stopping and need a driver."""
        ...

    async def waiting(self, kind: WaitKind) -> Sequence[str]:
        """Return the sessions that wait for something of this kind."""
        ...

    async def unmet(self) -> Sequence[Unmet]:
        """Return what calls demand that no runner offers, each with the number of sessions."""
        ...

    def close(self) -> None:
        """Close the read model."""
        ...


class HostDirectory(Protocol):
    """Finds the hosts of a dispatcher."""

    async def hosts(self) -> dict[str, HostPort]:
        """Return the living hosts by incarnation; dead ones are replaced."""
        ...


class Dispatcher:
    """Assigns sessions to hosts; it holds no state that is not in the log.

    With a *scope* it handles those sessions only, as for a dispatcher of one command. The
    children that they start join a scope that is a set.
    """

    def __init__(
        self,
        *,
        store: EventStore,
        index: WorkIndex,
        fleet: HostDirectory,
        board: PresenceBoard,
        clock: Clock,
        scope: Container[str] | None = None,
    ) -> None:
        self._store = store
        self._index = index
        self._fleet = fleet
        self._board = board
        self._clock = clock
        self._scope = scope
        self._rests = RestCache(Journal(store, Codec(), clock.now))
        self._follows = 0
        """Number of times that it began to follow the log."""
        self._asked_in = -1
        """The value of `_follows` when the index was last read."""

    async def tick(self) -> None:
        """Assign every session with work and no living owner to a host.

        Active sessions are only told of messages that they may have missed.

        Raises:
            HostsFullError: no host has a place for some sessions with work; they wait.
        """
        hosts = await self._fleet.hosts()
        active = {stream for host in hosts.values() for stream in await host.active()}
        follows = self._follows
        if active and follows == self._asked_in and await self._all_rest_but(active):
            return
        waiting = 0
        async for page in self._index.due(self._clock.now()):
            streams = [each.stream for each in page if each.unread or each.stream not in active]
            waiting += len(await self.place([s for s in streams if self._cares(s)]))
        self._asked_in = follows
        if waiting:
            raise HostsFullError(waiting, len(hosts))

    async def _all_rest_but(self, active: Collection[str]) -> bool:
        """Whether all sessions of the scope wait, except the *active* ones.

        Their messages are passed on as long as the log is followed.
        """
        if not isinstance(self._scope, Collection):
            return False
        others = [stream for stream in self._scope if stream not in active]
        return await self._rests.all(others, self._clock.now())

    async def follow(self) -> None:
        """Pass on new inbox messages and breaker events as they are appended, until an error.

        `tick` finds the messages that this misses.
        """
        after = await self._store.last_position()
        self._follows += 1
        # Breaker events from before are covered by one look.
        await self._look_at_breakers()
        async for recorded in self._store.follow(after, {"inbox", "breaker"}):
            stream = sibling(recorded.stream, "session")
            if category_of(recorded.stream) == "breaker":
                await self._pass_on(recorded.type)
            elif self._cares(stream):
                await self.place([stream])

    async def place(self, streams: Collection[str]) -> list[str]:
        """Assign *streams* to hosts, except those with a living owner elsewhere.

        Returns those for which no host has a place.
        """
        hosts = await self._fleet.hosts() if streams else {}
        if not hosts:
            return []
        heads = await self._store.heads(streams)
        # Read presence after the heads: an owner beats before it acquires a session.
        strangers = {head.owner for head in heads.values()} - {None, *hosts}
        present = await living(self._board, self._clock.now()) if strangers else []
        others = {each.incarnation for each in present}
        wanted = {s: head.owner for s, head in heads.items() if head.owner not in others - {*hosts}}
        free = dict(hosts)
        while wanted and free:
            refused: list[str] = []
            for incarnation, batch in _by_host(wanted, free).items():
                left = await hosts[incarnation].drive(batch)
                if left:
                    refused += left
                    del free[incarnation]
            wanted = dict.fromkeys(refused)
        return list(wanted)

    async def unmet(self) -> Sequence[Unmet]:
        """Return the demands of calls that wait for a runner or for a slot, and how many wait.

        So more runners that meet them would have work. A fleet asks this to start workers.
        """
        return await self._index.unmet()

    async def wake(self, kind: WaitKind) -> None:
        """Let the sessions that wait for *kind* try again."""
        waiting = await self._index.waiting(kind)
        await self.place([stream for stream in waiting if self._cares(stream)])

    async def _pass_on(self, happened: str) -> None:
        """Tell the hosts of a breaker event, and wake the sessions that wait for a breaker."""
        if happened == "FailureCounted":
            return
        await self._look_at_breakers()
        if happened == "BreakerClosed":
            await self.wake("breaker")

    async def _look_at_breakers(self) -> None:
        for host in (await self._fleet.hosts()).values():
            await host.look_at_breakers()

    def _cares(self, stream: str) -> bool:
        """Whether *stream* is in the scope; a child of a session in it joins it."""
        scope = self._scope
        if scope is None or stream in scope:
            return True
        above = parent_of(stream)
        if not isinstance(scope, set) or above is None or not self._cares(above):
            return False
        scope.add(stream)
        return True


def _by_host(wanted: Mapping[str, str | None], hosts: Collection[str]) -> dict[str, list[str]]:
    """Group the streams by host: the owner if it is one of *hosts*, else `_host_for`."""
    batches: dict[str, list[str]] = {}
    for stream, owner in wanted.items():
        host = owner if owner is not None and owner in hosts else _host_for(stream, hosts)
        batches.setdefault(host, []).append(stream)
    return batches


def _host_for(stream: str, hosts: Collection[str]) -> str:
    """Return the host for a session without an owner; the same host each time.

    If a host joins or leaves, only that host's sessions move (rendezvous hashing).
    """
    return max(hosts, key=lambda host: sha256(f"{host} {stream}".encode()).digest())
