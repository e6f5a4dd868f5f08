"""Simulates in one process a fleet of 1,000 nodes, with 10,000 runners and a host on each node.

The rules and the dispatcher are the real ones. The nodes, the hosts and the clock are fakes, and a
fake log has the owner of each session. The read model is a real one in memory: it holds 1,000,000
sessions that wait for a person, and 50,000 that run.
A tick compares the existing workers with the desired ones, gets the changes from the hosts, and
gives sessions with work to hosts. With k changes, k sessions have ended, k others have a message,
and k runners were lost. The cost of a change is measured among k changes and among ten times as
many.
Then a tenth of the nodes is lost, with their hosts and runners. The clock runs until all their
sessions have another host, and as many runners as before are started.
Seconds are CPU time: no code waits here.
Memory is what Python holds for the fleet and its sessions, by `tracemalloc`, without the read
model.
The messages between processes are not simulated: heartbeats, and answers to the dispatcher.
These messages limit a fleet of this size: each of 11,000 processes writes a heartbeat every two
seconds. If a runner joins or leaves, each host gets the whole list of runners.
Floors: 20 ms for a tick without changes; a change takes at most 2 × as long among ten times as many
changes.
"""

import random
import time
import tracemalloc
from collections.abc import AsyncIterator, Collection
from statistics import median
from typing import cast

from bench.table import Row, plain
from cueline.actors.assignments import HostReport
from cueline.actors.dispatcher import Dispatcher
from cueline.actors.session_host import ACTIVE, HostPort
from cueline.deciders.fleet import Group, Range
from cueline.deciders.fleet_worker import Joined, Lost, WorkerState, note
from cueline.deciders.reconcile import Census, Node, Report, Retire, Start, decide
from cueline.events.store import EventStore, Head, Presence, RecordedEvent, to_us
from cueline.projections.read_model import new_row
from cueline.projections.session import SessionReadModel
from cueline.projections.views import Views
from cueline.runtime.loop import run
from cueline.runtime.work_index import ViewsIndex
from cueline.stores import MemoryPresence
from cueline.testing.clock import FakeClock

NODES = 1_000
RUNNERS = 10_000
WAITING = 1_000_000
RUNNING = 50_000
LOST = NODES // 10
FEW, MANY = 100, 1_000
TICKS = 20
HOSTS_WANTED = Group("host", per_node=1)
RUNNERS_WANTED = Group("runner")
WANTED = {
    HOSTS_WANTED: Range(NODES - LOST, NODES),
    RUNNERS_WANTED: Range(RUNNERS, RUNNERS),
}
NODE = Node({}, {"cpus": 64.0})


class Log:
    """A log that has the owner of each session, and no events."""

    def __init__(self) -> None:
        self.owners: dict[str, str] = {}

    async def heads(self, streams: Collection[str]) -> dict[str, Head]:
        """See `EventStore.heads`."""
        return {s: Head(version=1, epoch=1, owner=self.owners.get(s)) for s in streams}

    async def last_position(self) -> int:
        """See `EventStore.last_position`."""
        return 0

    async def read_all(self, *_: object) -> AsyncIterator[RecordedEvent]:
        """See `EventStore.read_all`."""
        return
        yield


class Host:
    """A host without effects; see `HostPort`."""

    def __init__(self, name: str, log: Log) -> None:
        self.name = name
        self.sessions: set[str] = set()
        self._log = log
        self._ended: dict[str, bool] = {}
        self._reports = 0

    async def activate_all(self, streams: list[str]) -> list[str]:
        """See `HostPort.activate_all`."""
        self.sessions.update(streams)
        self._log.owners.update(dict.fromkeys(streams, self.name))
        return []

    async def report(self, after: int | None) -> HostReport:
        """See `HostPort.report`."""
        ended, self._ended = self._ended, {}
        active = None if after == self._reports else list(self.sessions)
        self._reports += 1
        return HostReport(self._reports, ended, len(self.sessions), ACTIVE, active=active)

    async def hand_over(self, sessions: int) -> None:
        """See `HostPort.hand_over`."""

    async def look_at_breakers(self) -> None:
        """See `HostPort.look_at_breakers`."""

    def end_one(self) -> str:
        """End a session, and return its stream."""
        stream = self.sessions.pop()
        self._ended[stream] = False
        return stream


class Fleet:
    """Nodes with the workers that the rules request; see `HostDirectory`."""

    def __init__(self, log: Log, board: MemoryPresence) -> None:
        self.census = Census()
        self.nodes: dict[str, set[str]] = {}
        self.runners: dict[str, str] = {}
        """Each with its node."""
        self.there: dict[str, Host] = {}
        self.started = 0
        self._log = log
        self._board = board
        self._now = 0.0
        self._numbers = 0
        for number in range(NODES):
            self.nodes[f"node-{number}"] = set()
            self.census.add_node(f"node-{number}", NODE)

    async def hosts(self) -> dict[str, HostPort]:
        """See `HostDirectory.hosts`."""
        return cast("dict[str, HostPort]", self.there)

    async def act(self) -> None:
        """Start and retire the workers that the rules request."""
        self._now += 1
        for action in decide(WANTED, self.census, self._now):
            match action:
                case Start(group=group, node=node) if node:
                    await self._start(group, node)
                case Report(group=group, pending=pending):
                    self.census.members(group).reported = pending
                case Start() | Retire():
                    pass

    async def lose(self, worker: str) -> None:
        """Lose a worker."""
        lost, _ = note(self.census.workers[worker], Lost(), self._now)
        self.census.put(worker, lost)
        await self._board.leave(worker)
        if worker in self.runners:
            node = self.runners.pop(worker)
            self.nodes.get(node, set()).discard(worker)
        else:
            self.there = {name: host for name, host in self.there.items() if name != worker}

    async def lose_node(self, name: str) -> None:
        """Lose a node with all its workers."""
        for worker in sorted(self.nodes.pop(name)):
            await self.lose(worker)
        self.census.lose_node(name)

    async def _start(self, group: Group, node: str) -> None:
        self._numbers += 1
        self.started += 1
        name = f"{group.kind}-{self._numbers:012}"
        self.nodes[node].add(name)
        state, _ = note(WorkerState(group, began=self._now), Joined(node), self._now)
        self.census.put(name, state)
        presence = Presence(
            incarnation=name,
            role=group.kind,
            machine=node,
            boot_id="b",
            pid=1,
            process_started=1,
            pid_namespace="p",
        )
        await self._board.beat(presence)
        if group.kind == "runner":
            self.runners[name] = node
        else:
            self.there = {**self.there, name: Host(name, self._log)}


def fill(views: Views, status: str, count: int, due_us: int) -> None:
    """Put *count* sessions with this *status* into the read model."""
    wait = {"wait_kind": "approval", "wait_cause": '{"code": "asked"}', "deadline_us": due_us}
    known = {"status": status, "version": 10, "due_us": due_us, "created_us": 0, "updated_us": 0}
    row = new_row(SessionReadModel, **known)
    row |= wait if due_us else {}
    named = {"stream": "'session-default/' || ? || n", "id": "? || n", "root": "? || n"}
    values = ", ".join(named.get(column, "?") for column in row)
    prefix = status[0]
    views.db.execute(
        "WITH RECURSIVE numbers(n) AS (SELECT 0 UNION ALL SELECT n + 1 FROM numbers WHERE n < ?)"
        f" INSERT INTO sessions ({', '.join(row)}) SELECT {values} FROM numbers",
        [count - 1, *(prefix if column in named else row[column] for column in row)],
    )


class Simulation:
    """A fleet, its sessions, and the dispatcher."""

    def __init__(self) -> None:
        self.clock = FakeClock()
        self.log, self.board = Log(), MemoryPresence(self.clock)
        self.fleet = Fleet(self.log, self.board)
        self.views = Views(":memory:")
        fill(self.views, "waiting", WAITING, to_us(self.clock.now()) + 10**13)
        fill(self.views, "running", RUNNING, 0)
        store = cast("EventStore", self.log)
        self.dispatcher = Dispatcher(
            store=store,
            index=ViewsIndex(self.views, store),
            fleet=self.fleet,
            board=self.board,
            clock=self.clock,
        )
        self.running = RUNNING
        self._next = 0
        self._chance = random.Random(1)

    async def tick(self) -> float:
        """Run one tick of the fleet and the dispatcher, and return its CPU seconds."""
        began = time.process_time()
        await self.fleet.act()
        await self.dispatcher.tick()
        return time.process_time() - began

    def undriven(self) -> int:
        """Return the number of running sessions without a living host."""
        return self.running - sum(len(host.sessions) for host in self.fleet.there.values())

    async def until_driven(self) -> tuple[float, int]:
        """Tick until every session has a host and no worker is missing.

        Return seconds and ticks.
        """
        seconds, ticks = 0.0, 0
        started = -1
        while self.undriven() or started != self.fleet.started:
            started = self.fleet.started
            seconds += await self.tick()
            ticks += 1
        return seconds, ticks

    async def changes(self, count: int) -> float:
        """Make *count* changes of each kind, and return the CPU seconds to handle them."""
        hosts = [host for host in self.fleet.there.values() if host.sessions]
        for number in range(count):
            stream = hosts[number % len(hosts)].end_one()
            del self.log.owners[stream]
            self.views.db.execute(
                "UPDATE sessions SET status = 'completed', due_us = NULL WHERE stream = ?", [stream]
            )
            self.running -= 1
        for runner in self._chance.sample(sorted(self.fleet.runners), count):
            await self.fleet.lose(runner)
        began = time.process_time()
        for _ in range(count):
            # As they are passed on from the log.
            await self.dispatcher.place([f"session-default/w{self._next}"])
            self._next += 1
            self.running += 1
        took = time.process_time() - began
        return took + await self.tick()

    async def lose_nodes(self) -> tuple[float, int]:
        """Lose a tenth of the nodes; return the seconds and ticks until all is replaced."""
        for name in self._chance.sample(sorted(self.fleet.nodes), LOST):
            await self.fleet.lose_node(name)
        return await self.until_driven()


async def weighed() -> float:
    """Return the memory of the fleet and its sessions, in MB."""
    tracemalloc.start()
    simulation = Simulation()
    before = tracemalloc.get_traced_memory()[0]
    await simulation.until_driven()
    taken = tracemalloc.get_traced_memory()[0] - before
    tracemalloc.stop()
    return taken / 1e6


async def simulate() -> list[Row]:
    """Return the rows of this bench."""
    simulation = Simulation()
    began, _ = await simulation.until_driven()
    idle = median([await simulation.tick() for _ in range(TICKS)])
    few = (await simulation.changes(FEW) - idle) / (3 * FEW)
    many = (await simulation.changes(MANY) - idle) / (3 * MANY)
    await simulation.tick()
    lost, ticks = await simulation.lose_nodes()
    return [
        Row(
            f"a tick of a fleet of {NODES:,} nodes with nothing changed", 1000 * idle, "ms", "≤ 20"
        ),
        Row(
            name=f"what one of {3 * MANY:,} changes adds",
            value=1e6 * many,
            unit="µs",
            floor="≤ 2 ×",
            ratio=many / few,
            to=f"one of {3 * FEW:,}",
        ),
        Row(f"the first {RUNNING:,} sessions given to hosts, all workers started", began, "s"),
        Row(
            name=f"a tenth of the nodes lost: their sessions and runners elsewhere, {ticks} ticks",
            value=lost,
            unit="s",
        ),
        Row("memory of a dispatcher for all that", await weighed(), "MB"),
    ]


def measure() -> list[Row]:
    """Return the rows of this bench."""
    return run(simulate())


if __name__ == "__main__":
    print(plain(measure()))
