"""The dispatcher's view of the sessions of each host.

`Assignments` needs no I/O and no clock: the dispatcher reports each change. The cost of a
decision depends on the number of changes and hosts, not of sessions.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from heapq import heapify, heappop, heappush

from msgspec import Struct

from cueline.deciders.matching import Load, Unmet, surplus

UNPLACED = 10_000
"""The most sessions without a host in memory; the index of work has the others."""


class HostReport(Struct, frozen=True):
    """The changes in a host since its last report."""

    number: int
    """The number of this report; the request for the next report contains it."""
    ended: Mapping[str, bool]
    """The sessions that became inactive; True for a session with work left."""
    sessions: int
    """The number of active sessions."""
    places: int
    """The highest number of active sessions; 0 while the host takes no sessions."""
    leaving: int = 0
    """The number of active sessions that the host gives up."""
    lacking: Sequence[Unmet] = ()
    """The demands of the host's calls that wait for a slot of a runner."""
    active: Collection[str] | None = None
    """All active sessions, if the caller does not have the host's last report; else None."""


class _Host:
    __slots__ = ("lacking", "leaving", "number", "places", "refuses", "sessions", "silent")

    def __init__(self) -> None:
        self.sessions: dict[str, None] = {}
        """Its sessions, in the order in which it got them."""
        self.places = 0
        self.leaving = 0
        self.number: int | None = None
        self.lacking: Sequence[Unmet] = ()
        self.refuses = False
        self.silent = False

    @property
    def rank(self) -> tuple[bool, int]:
        """The sort key of the host in the queue for new sessions: the lowest is first."""
        return self.silent, len(self.sessions)


class Assignments:
    """The sessions of each host, and the sessions that need a host."""

    def __init__(self) -> None:
        self._host_of: dict[str, str] = {}
        self._hosts: dict[str, _Host] = {}
        self._former: set[str] = set()
        """Hosts that have left, and may still be driving sessions that need a host."""
        self._queue: list[tuple[bool, int, str]] = []
        """Hosts with a place, least loaded first; an entry may be out of date."""
        self._unplaced: dict[str, None] = {}
        self._unheard: dict[str, None] = {}

    @property
    def active(self) -> Collection[str]:
        """The sessions that have a host."""
        return self._host_of.keys()

    @property
    def unplaced(self) -> Collection[str]:
        """The sessions that lost their host, or for which no host had a place."""
        return self._unplaced.keys()

    @property
    def are_hosts_full(self) -> bool:
        """Whether hosts take sessions, but have no place for another session."""
        return self._least() is None and any(host.places for host in self._hosts.values())

    @property
    def unheard(self) -> list[str]:
        """The hosts that were not asked for a report yet."""
        return list(self._unheard)

    def keep(self, hosts: Collection[str]) -> None:
        """Replace the known hosts by *hosts*; the sessions of removed hosts need a host."""
        for name in [name for name in self._hosts if name not in hosts]:
            self._former.add(name)
            self._unheard.pop(name, None)
            for stream in self._hosts.pop(name).sessions:
                del self._host_of[stream]
                self._need_host(stream)
        if not self._unplaced:
            self._former.clear()
        for name in hosts:
            if name not in self._hosts:
                self._hosts[name] = _Host()
                self._unheard[name] = None

    def last_report(self, host: str) -> int | None:
        """Return the number of the last report of *host*; None requests a list of all sessions."""
        return self._hosts[host].number if host in self._hosts else None

    def take(self, host: str, report: HostReport | None) -> None:
        """Apply *report*; None: *host* did not answer in time, and gets sessions last."""
        there = self._hosts.get(host)
        if there is None:
            return
        self._unheard.pop(host, None)
        before = (there.places, there.leaving, there.refuses, there.silent)
        there.refuses, there.silent = False, report is None
        if report is None:
            there.number = None
            self._push(host)
            return
        if report.active is not None:
            # A session that the host dropped without a report may have work.
            active = dict.fromkeys(report.active)
            ended = {stream: True for stream in there.sessions if stream not in active}
            for stream in active:
                self._put(stream, host)
        else:
            ended = {s: has_work for s, has_work in report.ended.items() if s in there.sessions}
        for stream, has_work in ended.items():
            self._drop(stream)
            if has_work:
                self._need_host(stream)
        there.lacking = report.lacking
        there.number = report.number if len(there.sessions) == report.sessions else None
        there.places, there.leaving = report.places, report.leaving
        if before != (there.places, there.leaving, False, False):
            self._push(host)

    def assign(self, streams: Iterable[tuple[str, str | None]]) -> dict[str, list[str]]:
        """Return the streams by host: the current, else the preferred, else the least loaded host.

        Streams for which no host has a place are left out, and still need a host.
        """
        batches: dict[str, list[str]] = {}
        for stream, preferred in streams:
            host = self._host_of.get(stream)
            if host is None:
                host = preferred if self._takes(preferred) else self._least()
            if host is None:
                self._need_host(stream)
                continue
            self._put(stream, host)
            batches.setdefault(host, []).append(stream)
        return batches

    def refuse(self, host: str, streams: Collection[str]) -> None:
        """Take back *streams*, for which *host* has no place, until the host reports again."""
        for stream in streams:
            if self._host_of.get(stream) == host:
                self._drop(stream)
        if streams and host in self._hosts:
            self._hosts[host].refuses = True

    def leave_to(self, owner: str | None, stream: str) -> None:
        """Leave a session to a living *owner* that is not one of the hosts."""
        if owner not in self._former:
            self._unplaced.pop(stream, None)

    def surplus(self) -> dict[str, int]:
        """Return by host how many sessions it should give up; see the function `surplus`."""
        return surplus(
            {
                name: Load(len(host.sessions), 0 if host.silent else host.places, host.leaving)
                for name, host in self._hosts.items()
            }
        )

    def loads(self) -> dict[str, int]:
        """Return the number of sessions of each host."""
        return {name: len(host.sessions) for name, host in self._hosts.items()}

    def lacking(self) -> list[Unmet]:
        """Return the demands of calls that wait for a slot of a runner, by host."""
        return [each for host in self._hosts.values() for each in host.lacking]

    def _need_host(self, stream: str) -> None:
        if len(self._unplaced) < UNPLACED:
            self._unplaced[stream] = None

    def _put(self, stream: str, host: str) -> None:
        self._unplaced.pop(stream, None)
        if self._host_of.get(stream) == host:
            return
        if stream in self._host_of:
            self._drop(stream)
        self._host_of[stream] = host
        self._hosts[host].sessions[stream] = None
        self._push(host)

    def _drop(self, stream: str) -> None:
        host = self._host_of.pop(stream)
        self._hosts[host].sessions.pop(stream, None)
        self._push(host)

    def _takes(self, host: str | None) -> bool:
        there = self._hosts.get(host or "")
        return there is not None and not there.refuses and len(there.sessions) < there.places

    def _push(self, host: str) -> None:
        if len(self._queue) > 2 * len(self._hosts) + 1000:
            self._queue = [(*each.rank, name) for name, each in self._hosts.items()]
            heapify(self._queue)
        elif self._takes(host):
            heappush(self._queue, (*self._hosts[host].rank, host))

    def _least(self) -> str | None:
        """Return the host with the fewest sessions among those with a place, silent hosts last."""
        while self._queue:
            *rank, host = self._queue[0]
            if self._takes(host) and self._hosts[host].rank == tuple(rank):
                return host
            heappop(self._queue)
        return None
