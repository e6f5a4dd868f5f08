"""The dispatcher: assigns sessions with work and no living owner to hosts."""

import asyncio
from collections.abc import (
    AsyncIterator,
    Awaitable,
    Callable,
    Collection,
    Container,
    Coroutine,
    Iterable,
    Iterator,
    Sequence,
)
from datetime import datetime
from itertools import islice
from typing import NamedTuple, Protocol, TypeVar

from cueline.actors.assignments import Assignments
from cueline.actors.presence import living
from cueline.actors.runner_registry import RunIndex
from cueline.actors.session_host import HostPort
from cueline.actors.session_owner import aside_by, owners_of
from cueline.actors.stream_end import RestCache
from cueline.clock import Clock
from cueline.deciders.matching import Offer, Unmet
from cueline.errors import HostsFullError
from cueline.events.codec import Codec
from cueline.events.journal import Journal
from cueline.events.session import WaitKind
from cueline.events.start import first_of, parent_of
from cueline.events.store import EventStore, PresenceBoard
from cueline.events.stream import category_of, sibling

TICK_SECONDS = 1.0
Answer = TypeVar("Answer")
BATCH = 1000
"""Number of sessions in one query of the log."""


_RUNNER_CAME = frozenset({"RunnerRegistered", "RunnerBack"})


class Work(NamedTuple):
    """A session with work."""

    stream: str
    unread: bool
    """Whether its inbox holds unread messages."""


class WorkIndex(RunIndex, Protocol):
    """Finds sessions with work in a read model; also finds runs, as a `RunIndex`."""

    def overdue(self, now: datetime) -> AsyncIterator[Sequence[Work]]:
        """Return the waiting sessions whose deadline has passed, in pages."""

    async def pending(self, after: str) -> Sequence[Work]:
        """Return the page of sessions with work that begins *after* a stream, sorted by stream.

        Such a session has unread messages, or is running or stopping, also if it has a driver.
        """

    async def driven(self) -> Sequence[str]:
        """Return the sessions that are running or stopping and need a driver."""

    async def waiting(
        self, kind: WaitKind, offers: Collection[Offer] | None = None
    ) -> Sequence[str]:
        """Return the sessions whose wait is of this *kind*.

        If *offers* is given, sessions that wait for a runner outside *offers* are left out.
        """

    async def unmet(self) -> Sequence[Unmet]:
        """Return the unmet demands of waiting calls, each with the number of sessions."""

    def close(self) -> None:
        """Close the read model."""


class HostDirectory(Protocol):
    """Finds the hosts of a dispatcher."""

    async def hosts(self) -> dict[str, HostPort]:
        """Return the living hosts by incarnation, including draining hosts.

        Each change creates a new mapping, so that callers can compare by identity.
        """


class Dispatcher:
    """Assigns sessions to hosts; all its state is also in the log or in the hosts.

    With a *scope*, for example of one command, the dispatcher handles only these sessions. If
    the scope is a set, their children are added to it.
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
        self._sessions = Assignments()
        self._hosts: dict[str, HostPort] = {}
        self._calls: dict[str, asyncio.Lock] = {}
        """A lock for each host, held during a call, which a report at that time may not include."""
        self._rests = RestCache(Journal(store, Codec(), clock.now))
        self._looked_to = ""
        """The stream up to which the index was last searched for pending work."""
        self._follows = 0
        """The number of times that `follow` has started to read the log."""
        self._asked_in = -1
        """The value of `_follows` when the index was last read."""

    async def tick(self) -> None:
        """Assign sessions with work and no living owner to hosts, and balance the hosts.

        Active sessions only get messages that they may have missed. The cost depends on the number
        of changes, plus one page of the sessions with work.

        Raises:
            HostsFullError: no host has a place for some sessions with work; they wait.
        """
        await self._find_hosts()
        await _each(map(self._ask, self._hosts))
        try:
            await self._place_work()
        finally:  # last, so that an error in it keeps no session from a host
            surplus = self._sessions.surplus()
            await _each(self._hosts[host].hand_over(count) for host, count in surplus.items())

    async def _place_work(self) -> None:
        """Find the sessions with work, and give those without a driver to hosts."""
        follows, sessions = self._follows, self._sessions
        may_rest = sessions.active and not sessions.unplaced and follows == self._asked_in
        if may_rest and await self._all_rest_but(sessions.active):
            return
        for batch in _batches(sessions.unplaced):
            await self.place(batch)
        async for page in self._index.overdue(self._clock.now()):
            await self.place(self._without_driver(page))
        await self._look_for_pending()
        if self._asked_in != follows and follows > 1:
            await self.wake("runner")  # a runner may have come while the log was not followed
        self._asked_in = follows
        if sessions.unplaced and sessions.are_hosts_full:
            raise HostsFullError(len(sessions.unplaced), len(self._hosts))

    async def _look_for_pending(self) -> None:
        """Read the next page of pending work, and further pages as long as sessions find a host."""
        page = await self._index.pending(self._looked_to) or await self._index.pending("")
        while page:
            streams = self._without_driver(page)
            new = [each for each in streams if each not in self._sessions.active]
            await self.place(streams)
            self._looked_to = page[-1].stream
            if not any(stream in self._sessions.active for stream in new):
                return
            page = await self._index.pending(self._looked_to)

    def _without_driver(self, page: Sequence[Work]) -> list[str]:
        """Return the sessions of a page that need a host or have a message."""
        active, unplaced = self._sessions.active, self._sessions.unplaced
        found = [each.stream for each in page if each.unread or each.stream not in active]
        return [each for each in found if each not in unplaced and self._cares(each)]

    async def _all_rest_but(self, active: Collection[str]) -> bool:
        """Whether all sessions of the scope wait, except the *active* ones.

        While the log is followed, their messages are passed on.
        """
        if not isinstance(self._scope, Collection):
            return False
        others = [stream for stream in self._scope if stream not in active]
        return await self._rests.all(others, self._clock.now())

    async def follow(self) -> None:
        """Pass on new messages and new events of breakers and runners, until an error.

        `tick` finds the messages that this misses.
        """
        after = await self._store.last_position()
        self._follows += 1
        # This covers the breaker events before *after*.
        await self._look_at_breakers()
        async for recorded in self._store.follow(after, {"inbox", "breaker", "fleet"}):
            stream = sibling(recorded.stream, "session")
            if category_of(recorded.stream) == "breaker":
                await self._pass_on(recorded.type)
            elif category_of(recorded.stream) == "fleet":
                if recorded.type in _RUNNER_CAME:
                    await self.wake("runner")
            elif self._cares(stream):
                await self.place([stream])

    async def place(self, streams: Collection[str]) -> None:
        """Assign *streams* to hosts, except those with a living owner elsewhere.

        `tick` tries again with sessions for which no host has a place.
        """
        if not streams or not await self._find_hosts():
            return
        wanted = await self._without_living_owner(streams)
        while batches := self._sessions.assign(wanted.items()):
            refused = await _each(self._drive(*batch) for batch in batches.items())
            wanted = {stream: None for each in refused for stream in each}

    async def _without_living_owner(self, streams: Collection[str]) -> dict[str, str | None]:
        """Return the *streams* that hosts may activate, each with its required host."""
        heads = await self._store.heads(streams)
        # Read presence after the heads: an owner beats before it acquires a session.
        strangers = {head.owner for head in heads.values()} - {None, *self._hosts}
        present = await living(self._board, self._clock.now()) if strangers else []
        others = {each.incarnation for each in present} - self._hosts.keys()
        wanted = {}
        for stream, head in heads.items():
            if head.owner in others:
                self._sessions.leave_to(head.owner, stream)
            else:
                # A host keeps the time until which it has set a session aside.
                wanted[stream] = aside_by(head.owner)
        return wanted

    async def _find_hosts(self) -> Collection[str]:
        hosts = await self._fleet.hosts()
        if hosts is not self._hosts:
            self._hosts = hosts
            self._calls = {name: self._calls.get(name) or asyncio.Lock() for name in hosts}
            self._sessions.keep(hosts)
        await _each(map(self._ask, self._sessions.unheard))
        return self._hosts

    async def _ask(self, host: str) -> None:
        """Read the report of *host*."""
        port = self._hosts.get(host)
        if port is not None:
            async with self._calls[host]:
                report = await port.report(self._sessions.last_report(host))
                self._sessions.take(host, report)

    async def _drive(self, host: str, streams: list[str]) -> list[str]:
        """Let *host* activate *streams*; return the streams for which it has no place."""
        port = self._hosts.get(host)
        if port is None:
            return []  # the host has left, and the sessions need another host
        async with self._calls[host]:
            refused = await port.activate_all(streams)
            self._sessions.refuse(host, refused)
        return refused

    async def unmet(self) -> Sequence[Unmet]:
        """Return the demands of calls that wait for a runner or for a slot, and how many wait.

        More runners that meet these demands would have work, so a fleet starts workers for them.
        Demands may be listed more than once.
        """
        return [*await self._index.unmet(), *self._sessions.lacking()]

    def loads(self) -> dict[str, int]:
        """Return the number of sessions of each host, so that a fleet can retire idle hosts."""
        return self._sessions.loads()

    async def wake(self, kind: WaitKind, offers: Collection[Offer] | None = None) -> None:
        """Let the sessions that wait for *kind* try again. See `WorkIndex.waiting`."""
        for batch in _batches(filter(self._cares, await self._index.waiting(kind, offers))):
            await self.place(batch)

    async def _pass_on(self, happened: str) -> None:
        """Pass a breaker event to the hosts, and wake the sessions that wait for a breaker."""
        if happened == "FailureCounted":
            return
        await self._look_at_breakers()
        if happened == "BreakerClosed":
            await self.wake("breaker")

    async def _look_at_breakers(self) -> None:
        await self._find_hosts()
        await _each(host.look_at_breakers() for host in self._hosts.values())

    def _cares(self, stream: str) -> bool:
        """Whether *stream* is in the scope; children and later sessions of a series join it."""
        scope = self._scope
        if scope is None or stream in scope:
            return True
        above = parent_of(stream) or first_of(stream)
        if not isinstance(scope, set) or above is None or not self._cares(above):
            return False
        scope.add(stream)
        return True


async def _each(works: Iterable[Coroutine[object, object, Answer]]) -> list[Answer]:
    """Return the results of *works*, which run at the same time."""
    several = list(works)
    return [await several[0]] if len(several) == 1 else await asyncio.gather(*several)


def _batches(streams: Iterable[str]) -> Iterator[list[str]]:
    """Return the current *streams* in batches for one query of the log."""
    found = iter(list(streams))
    while batch := list(islice(found, BATCH)):
        yield batch


Placing = Callable[[Collection[str]], Awaitable[None]]


class RecoveryFilter(Container[str]):
    """Contains every session that is not in *left*; a session leaves *left* with a new message."""

    def __init__(self, left: Collection[str], after: int) -> None:
        self._left = set(left)
        self._after = after

    def __contains__(self, stream: object) -> bool:
        return stream not in self._left

    async def follow(self, store: EventStore, place: Placing) -> None:
        """Include a session as soon as its inbox gets a message; run without end.

        After an error, call it again: it continues from the same position.
        """
        async for recorded in store.follow(self._after, {"inbox"}):
            self._after = recorded.position
            stream = sibling(recorded.stream, "session")
            if stream in self._left:
                # Before `place`: if that fails, the tick of the dispatcher finds the session.
                self._left.discard(stream)
                await place([stream])


async def find_orphans(
    store: EventStore, index: WorkIndex, board: PresenceBoard, *, now: datetime, since: int
) -> list[str]:
    """Return the running sessions without a driver, by their last facts.

    Skips sessions with events after the position *since*, at which the caller began: they
    belong to the caller, or were started meanwhile.
    """
    running = await index.driven()
    driven = await owners_of(store, board, running, now)
    return [s for s in running if s not in driven and not await _is_running(store, s, since)]


async def _is_running(store: EventStore, session: str, since: int) -> bool:
    for stream in (session, sibling(session, "inbox")):
        last = (await store.head(stream)).version
        async for recorded in store.read(stream, last - 1):
            if recorded.position > since:
                return True
    return False
