"""Compares the desired workers with the observed ones.

`Census` gets each change of a worker or node, and counts. So the cost of `decide` depends
on the number of groups and of changes, not on the number of workers or nodes.

Times are seconds of any one clock.
"""

from collections import Counter, OrderedDict
from collections.abc import Iterable, Iterator, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from itertools import chain, cycle, islice, repeat, takewhile
from typing import NamedTuple

from cueline.deciders.fleet import NONE, Group, Range
from cueline.deciders.fleet_worker import WorkerState
from cueline.deciders.matching import Offer, Unmet
from cueline.deciders.matching import unmet as unmet_by
from cueline.events.agent_parts import Demands

CPUS = 0.01
"""The default resources of a worker: Ray reports no demand for a worker without resources."""
BRIEF_SECONDS = 5.0
"""A worker that ends earlier has died young: its start may be the cause."""
REST_SECONDS = 5.0
"""The wait before the next start in a group whose workers die young."""


class Start(NamedTuple):
    """Start a worker of *group*."""

    group: Group
    node: str = ""
    """The node to start it on, whose turn it is; empty: Ray chooses."""
    avoid: tuple[str, ...] = ()
    """The nodes that have the most workers of the group that they may have."""


class Retire(NamedTuple):
    """Let *worker* finish its work, and end it."""

    worker: str


class Report(NamedTuple):
    """The number of workers of *group* that wait for a node has changed."""

    group: Group
    pending: int


Action = Start | Retire | Report


class Node(NamedTuple):
    """The resources of a node, used or not."""

    labels: Mapping[str, str]
    resources: Mapping[str, float]
    """The amounts by the names of `WorkerGroup.resources`."""


@dataclass(slots=True, eq=False)
class _Members:
    """The workers of one group by their state, in the order in which they entered it."""

    starting: dict[str, float] = field(default_factory=dict)
    busy: dict[str, float] = field(default_factory=dict)
    idle: dict[str, float] = field(default_factory=dict)
    """The idle workers, each with the time since when."""
    pending: set[str] = field(default_factory=set)
    """The workers of `starting` that wait for a node."""
    reported: int = 0
    on_node: Counter[str] = field(default_factory=Counter)
    room: OrderedDict[str, None] = field(default_factory=OrderedDict)
    """The nodes that can hold one more worker, in the order of their turns."""
    brief: int = 0
    """The number of workers that died young in a row."""
    rests_until: float = 0.0

    def __len__(self) -> int:
        return len(self.starting) + len(self.busy) + len(self.idle)

    def put(self, worker: str, state: WorkerState) -> None:
        """Enter a worker by its *state*, or take it out."""
        place = self.starting
        if state.phase == "running":
            place = self.busy if state.load else self.idle
        for each in (self.starting, self.busy, self.idle):
            if each is not place or not state.counts:
                each.pop(worker, None)
        self.pending.discard(worker)
        if state.counts:
            place.setdefault(worker, state.since)
            self.pending.update([worker] if state.phase == "pending" else [])

    def to_retire(self) -> Iterator[str]:
        """Return the workers in the order in which they are given up."""
        return chain(reversed(self.starting), reversed(self.idle), reversed(self.busy))


class Census:
    """The workers that count, by group and node, and the nodes."""

    def __init__(self) -> None:
        self.groups: dict[Group, _Members] = {}
        self.workers: dict[str, WorkerState] = {}
        self.leaving: dict[str, Group] = {}
        """The workers on a node that is about to leave."""
        self.nodes: dict[str, Node] = {}
        """The nodes that take workers."""
        self.draining: AbstractSet[str] = frozenset()

    def members(self, group: Group) -> _Members:
        """Return the workers of *group*."""
        if (members := self.groups.get(group)) is None:
            members = self.groups[group] = _Members()
            fitting = (name for name, node in self.nodes.items() if fits(group, node))
            members.room.update(dict.fromkeys(fitting))
        return members

    def put(self, worker: str, state: WorkerState) -> None:
        """Count a worker by its new *state*."""
        before = self.workers.pop(worker, None)
        if before is None and not state.counts:
            return
        members = self.members(state.group)
        members.put(worker, state)
        was, node = before.node if before else "", state.node if state.counts else ""
        if was != node:
            self._move(worker, state.group, was, node)
        if state.counts:
            self.workers[worker] = state
        elif state.phase == "lost":
            members.brief = members.brief + 1 if state.since - state.began < BRIEF_SECONDS else 0
            if members.brief > max(1, len(members)):
                members.rests_until = state.since + REST_SECONDS

    def add_node(self, name: str, node: Node) -> None:
        """Count a node that joined."""
        self.nodes[name] = node
        for group in self.groups:
            self._find_room(group, name)

    def lose_node(self, name: str) -> None:
        """Remove a node: it takes no more workers."""
        self.nodes.pop(name, None)
        for group in self.groups:
            self._find_room(group, name)

    def drain(self, nodes: AbstractSet[str]) -> AbstractSet[str]:
        """Count the *nodes* that drain, whose workers leave; return the new ones."""
        new, self.draining = nodes - self.draining, nodes
        for name in new:
            self.lose_node(name)
        there = self.workers.items() if new else ()
        self.leaving.update({name: each.group for name, each in there if each.node in new})
        return new

    def _move(self, worker: str, group: Group, was: str, node: str) -> None:
        members = self.groups[group]
        self.leaving.pop(worker, None)
        if was:
            members.on_node[was] -= 1
            if not members.on_node[was]:
                del members.on_node[was]
            self._find_room(group, was)
            if was in members.room:
                members.room.move_to_end(was, last=False)
        if node:
            members.on_node[node] += 1
            self._find_room(group, node)
            if node in self.draining:
                self.leaving[worker] = group

    def _find_room(self, group: Group, name: str) -> None:
        """Give a node the last turn for one more of *group*, if it can hold that."""
        members, node = self.groups[group], self.nodes.get(name)
        members.room.pop(name, None)
        is_full = group.per_node is not None and members.on_node[name] >= group.per_node
        if node is not None and not is_full and fits(group, node):
            members.room[name] = None


def takes(group: Group) -> dict[str, float]:
    """Return the resources that a worker of *group* takes of its node."""
    return {"cpus": CPUS, **dict(group.resources)}


def fits(group: Group, node: Node) -> bool:
    """Whether an empty *node* could hold a worker of *group*."""
    return all(node.labels.get(name) == value for name, value in group.labels) and all(
        node.resources.get(name, 0.0) >= amount for name, amount in takes(group).items()
    )


def decide(
    wanted: Mapping[Group, Range],
    census: Census,
    now: float,
    *,
    unmet: Mapping[Group, int] = {},
    idle_seconds: float = 0.0,
) -> list[Action]:
    """Return the actions that make the workers those that are *wanted*.

    Args:
        wanted: how many of each group.
        census: the workers as they are.
        now: in seconds.
        unmet: the number of further workers of a group that waiting work could use.
        idle_seconds: workers above the minimum that are idle for longer retire.
    """
    actions: list[Action] = [Retire(worker) for worker in census.leaving]
    leaving = Counter(census.leaving.values())
    for group in {**wanted, **census.groups}:
        members = census.members(group)
        least, most = wanted.get(group, NONE)
        have = len(members) - leaving[group]
        more = max(0, unmet.get(group, 0) - len(members.starting) - len(members.idle))
        target = min(most, max(least, have + more))
        pending = len(members.pending)
        if have < target and now >= members.rests_until:
            starts = list(_starts(group, members, target - have))
            actions += starts
            pending += target - have - len(starts)
        elif have > most:
            stay = (each for each in members.to_retire() if each not in census.leaving)
            actions += [Retire(worker) for worker in islice(stay, have - most)]
        elif have > least and not unmet.get(group):
            idle = _idle_too_long(members, have - least, now - idle_seconds)
            actions += [Retire(worker) for worker in idle if worker not in census.leaving]
        if pending != members.reported:
            actions.append(Report(group, pending))
    return actions


def needed(
    wanted: Mapping[Group, Range], waiting: Iterable[Unmet], slots: int, *, is_full: bool
) -> dict[Group, int]:
    """Return the number of further workers of each group that waiting work could use.

    Args:
        wanted: the groups; those with an exact number need none.
        waiting: the calls that wait for a runner.
        slots: the number of calls that one runner has at a time.
        is_full: whether sessions wait for a place in a host.
    """
    ranges = [group for group, count in wanted.items() if count.least < count.most]
    calls: Counter[Group] = Counter()
    for demands, count in waiting:
        # Which machine a worker will be on is not known before it is there.
        rest = demands.model_copy(update={"machine": ""})
        meets = (group for group in ranges if group.kind == "runner" and _meets(group, rest))
        calls.update(dict.fromkeys(islice(meets, 1), count))
    hosts = [group for group in ranges if group.kind == "host"][:is_full]
    return {group: -(-count // slots) for group, count in calls.items()} | dict.fromkeys(hosts, 1)


def _meets(group: Group, demands: Demands) -> bool:
    return not unmet_by(Offer("", None, dict(group.labels), takes(group)), demands)


def _starts(group: Group, members: _Members, count: int) -> Iterator[Start]:
    if group.per_node is None:
        turns = cycle(members.room) if members.room else repeat("")
        yield from (Start(group, node) for node in islice(turns, count))
        return
    given: Counter[str] = Counter()
    for node in islice(cycle(members.room), min(count, len(members.room)) * group.per_node):
        if not count:
            return
        if members.on_node[node] + given[node] < group.per_node:
            given[node] += 1
            count -= 1
            yield Start(group, node)
    # Each may get a new node, and no node more than its limit.
    unplaced = len(members) - members.on_node.total()
    avoid = tuple(members.on_node)
    yield from (Start(group, avoid=avoid) for _ in range(min(count, group.per_node - unplaced)))


def _idle_too_long(members: _Members, count: int, since: float) -> Iterator[str]:
    idle = takewhile(lambda each: each[1] <= since, members.idle.items())
    yield from (worker for worker, _ in islice(idle, count))
