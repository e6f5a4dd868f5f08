"""Compares the desired workers with the observed ones.

`Observed` gets each change of a worker or node, and counts. So the cost of `decide` depends
on the number of groups and of changes, not on the number of workers or nodes.

Times are seconds of any one clock.
"""

from collections import Counter, OrderedDict
from collections.abc import Iterable, Iterator, Mapping
from itertools import cycle, islice, repeat, takewhile
from typing import NamedTuple

from cueline.deciders.fleet import NONE, Group, Range
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


class _Worker:
    __slots__ = ("began", "group", "node")

    def __init__(self, group: Group, began: float) -> None:
        self.group = group
        self.began = began
        self.node = ""


class _Members:
    """The workers of one group by their state, in the order in which they entered it."""

    __slots__ = (
        "brief",
        "busy",
        "idle",
        "on_node",
        "pending",
        "reported",
        "rests_until",
        "room",
        "starting",
    )

    def __init__(self) -> None:
        self.starting: dict[str, None] = {}
        self.busy: dict[str, None] = {}
        self.idle: dict[str, float] = {}
        """The idle workers, each with the time since when."""
        self.pending: dict[str, None] = {}
        """The workers of `starting` that wait for a node."""
        self.reported = 0
        self.on_node: Counter[str] = Counter()
        self.room: OrderedDict[str, None] = OrderedDict()
        """The nodes that can hold one more worker, in the order of their turns."""
        self.brief = 0
        """The number of workers that died young in a row."""
        self.rests_until = 0.0

    def __len__(self) -> int:
        return len(self.starting) + len(self.busy) + len(self.idle)

    def take_out(self, worker: str) -> None:
        for place in (self.starting, self.busy, self.idle, self.pending):
            place.pop(worker, None)

    def to_retire(self) -> Iterator[str]:
        """Return the workers in the order in which they are given up."""
        yield from reversed(self.starting)
        yield from reversed(self.idle)
        yield from reversed(self.busy)


class Observed:
    """The observed workers and nodes."""

    def __init__(self) -> None:
        self.groups: dict[Group, _Members] = {}
        self.leaving: dict[str, Group] = {}
        """The counted workers on a node that is about to leave."""
        self._workers: dict[str, _Worker] = {}
        self._nodes: dict[str, Node] = {}
        self._on_node: dict[str, dict[str, None]] = {}

    def members(self, group: Group) -> _Members:
        """Return the workers of *group*."""
        if (members := self.groups.get(group)) is None:
            members = self.groups[group] = _Members()
            fitting = (name for name, node in self._nodes.items() if fits(group, node))
            members.room.update(dict.fromkeys(fitting))
        return members

    def start(self, worker: str, group: Group, now: float, node: str = "") -> None:
        """Note a worker that was started; its node may not be known yet."""
        self._workers[worker] = _Worker(group, now)
        self.members(group).starting[worker] = None
        if node:
            self.place(worker, node)

    def place(self, worker: str, node: str) -> None:
        """Note that a worker is on *node*."""
        seen = self._workers.get(worker)
        if seen is None or seen.node == node:
            return
        self._unplace(worker, seen)
        seen.node = node
        self._on_node.setdefault(node, {})[worker] = None
        members = self.members(seen.group)
        members.on_node[node] += 1
        self._find_room(seen.group, node)

    def wait(self, worker: str) -> None:
        """Note that a worker waits for a node that can hold it."""
        if (members := self._members_of(worker)) is not None:
            members.pending[worker] = None

    def note(self, worker: str, load: int, now: float) -> None:
        """Note how much work a worker that accepts work has *now*."""
        members = self._members_of(worker)
        if members is None or worker in (members.busy if load else members.idle):
            return
        members.take_out(worker)
        if load:
            members.busy[worker] = None
        else:
            members.idle[worker] = now

    def leave(self, worker: str) -> None:
        """Note that a worker accepts no more work, so it no longer counts."""
        if (members := self._members_of(worker)) is not None:
            members.take_out(worker)
            self._unplace(worker, self._workers.pop(worker))
            self.leaving.pop(worker, None)

    def lose(self, worker: str, now: float) -> None:
        """Note that a worker ended, or is silent."""
        if (seen := self._workers.get(worker)) is None:
            return
        self.leave(worker)
        members = self.members(seen.group)
        members.brief = members.brief + 1 if now - seen.began < BRIEF_SECONDS else 0
        if members.brief > max(1, len(members)):
            members.rests_until = now + REST_SECONDS

    def add_node(self, name: str, node: Node) -> None:
        """Note a node that joined."""
        self._nodes[name] = node
        for group in self.groups:
            self._find_room(group, name)

    def lose_node(self, name: str, *, drains: bool = False) -> None:
        """Note a node that takes no more workers; if it *drains*, those on it leave."""
        self._nodes.pop(name, None)
        for group in self.groups:
            self._find_room(group, name)
        if drains:
            there = self._on_node.get(name, ())
            self.leaving.update({worker: self._workers[worker].group for worker in there})

    def report(self, group: Group, pending: int) -> None:
        """Note that so many pending workers of *group* were reported."""
        self.members(group).reported = pending

    def _members_of(self, worker: str) -> _Members | None:
        seen = self._workers.get(worker)
        return None if seen is None else self.groups[seen.group]

    def _unplace(self, worker: str, seen: _Worker) -> None:
        if not seen.node:
            return
        self._on_node[seen.node].pop(worker)
        if not self._on_node[seen.node]:
            del self._on_node[seen.node]
        on_node = self.groups[seen.group].on_node
        on_node[seen.node] -= 1
        if not on_node[seen.node]:
            del on_node[seen.node]
        self._find_room(seen.group, seen.node)
        if seen.node in (room := self.groups[seen.group].room):
            room.move_to_end(seen.node, last=False)

    def _find_room(self, group: Group, name: str) -> None:
        """Give a node the last turn for one more of *group*, if it can hold that."""
        members, node = self.groups[group], self._nodes.get(name)
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
    observed: Observed,
    now: float,
    *,
    unmet: Mapping[Group, int] = {},
    idle_seconds: float = 0.0,
) -> list[Action]:
    """Return the actions that make the workers those that are *wanted*.

    Args:
        wanted: how many of each group.
        observed: the workers as they are.
        now: in seconds.
        unmet: the number of further workers of a group that waiting work could use.
        idle_seconds: workers above the minimum that are idle for longer retire.
    """
    actions: list[Action] = [Retire(worker) for worker in observed.leaving]
    leaving = Counter(observed.leaving.values())
    for group in {**wanted, **observed.groups}:
        members = observed.members(group)
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
            stay = (each for each in members.to_retire() if each not in observed.leaving)
            actions += [Retire(worker) for worker in islice(stay, have - most)]
        elif have > least and not unmet.get(group):
            idle = _idle_too_long(members, have - least, now - idle_seconds)
            actions += [Retire(worker) for worker in idle if worker not in observed.leaving]
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
