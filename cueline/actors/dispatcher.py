"""The dispatcher: finds sessions with work and no living owner, gives them to a host."""

from collections.abc import AsyncIterator, Collection, Container, Mapping, Sequence
from datetime import datetime
from hashlib import sha256
from typing import NamedTuple, Protocol

from cueline.actors.presence import living
from cueline.actors.rest_cache import RestCache
from cueline.actors.session_host import HostPort
from cueline.clock import Clock
from cueline.errors import HostsFullError
from cueline.events.codec import Codec
from cueline.events.journal import Journal
from cueline.events.session import WaitKind
from cueline.events.store import EventStore, PresenceBoard
from cueline.events.stream import category_of, sibling

TICK_SECONDS = 1.0


class Work(NamedTuple):
    """A session that has something to do."""

    stream: str
    unread: bool
    """Its inbox holds messages that it has not read."""


class WorkIndex(Protocol):
    """Which sessions have work, as a read model knows it."""

    def due(self, now: datetime) -> AsyncIterator[Sequence[Work]]:
        """Return the sessions with work in pages, the nearest deadlines first.

        These are sessions with unread messages, with a deadline that has passed, and those
        that are running or stopping, whether somebody drives them or not.
        """
        ...

    async def driven(self) -> Sequence[str]:
        """Return sessions that are running or stopping: somebody should drive them."""
        ...

    async def waiting(self, kind: WaitKind) -> Sequence[str]:
        """Return sessions that rest for want of something."""
        ...

    def close(self) -> None:
        """Let go of the read model."""
        ...


class HostDirectory(Protocol):
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
        """How often it began to follow the log."""
        self._asked_in = -1
        """In which of these times it asked the index last."""

    async def tick(self) -> None:
        """Give every session with work and no living owner to a host.

        A session that lives in a host is only told of messages that it may have missed.

        Raises:
            HostsFullError: some sessions have work and no host has a place for them; they wait.
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
        """Whether every session of the scope rests, but the *active* ones: none has to be found.

        Messages to them are passed on as long as the log is followed.
        """
        if not isinstance(self._scope, Collection):
            return False
        others = [stream for stream in self._scope if stream not in active]
        return await self._rests.all(others, self._clock.now())

    async def follow(self) -> None:
        """Pass on at once what comes into inboxes and happens to breakers, until that fails.

        `tick` finds the messages that this misses.
        """
        after = await self._store.last_position()
        self._follows += 1
        # What happened to breakers while nobody followed is told by looking once.
        await self._look_at_breakers()
        async for recorded in self._store.follow(after, {"inbox", "breaker"}):
            stream = sibling(recorded.stream, "session")
            if category_of(recorded.stream) == "breaker":
                await self._pass_on(recorded.type)
            elif self._cares(stream):
                await self.place([stream])

    async def place(self, streams: Collection[str]) -> list[str]:
        """Give *streams* to hosts, unless somebody else's host drives them.

        Returns those for which no host has a place.
        """
        hosts = await self._fleet.hosts() if streams else {}
        if not hosts:
            return []
        heads = await self._store.heads(streams)
        # After the heads: who owns a session has beaten before.
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

    async def wake(self, kind: WaitKind) -> None:
        """Have the sessions try again that rest for want of something: it may be there now."""
        waiting = await self._index.waiting(kind)
        await self.place([stream for stream in waiting if self._cares(stream)])

    async def _pass_on(self, happened: str) -> None:
        """Tell the hosts of what changes whether calls go out, and wake who waited for that."""
        if happened == "FailureCounted":
            return
        await self._look_at_breakers()
        if happened == "BreakerClosed":
            await self.wake("breaker")

    async def _look_at_breakers(self) -> None:
        for host in (await self._fleet.hosts()).values():
            await host.look_at_breakers()

    def _cares(self, stream: str) -> bool:
        return self._scope is None or stream in self._scope


def _by_host(wanted: Mapping[str, str | None], hosts: Collection[str]) -> dict[str, list[str]]:
    """Return which host is offered which streams: the owner, if it is one of *hosts*."""
    batches: dict[str, list[str]] = {}
    for stream, owner in wanted.items():
        host = owner if owner is not None and owner in hosts else _host_for(stream, hosts)
        batches.setdefault(host, []).append(stream)
    return batches


def _host_for(stream: str, hosts: Collection[str]) -> str:
    """Return the host of a session that no living one has had; the same every time.

    When a host comes or goes, only sessions that it gets or had change places.
    """
    return max(hosts, key=lambda host: sha256(f"{host} {stream}".encode()).digest())
