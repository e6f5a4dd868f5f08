"""The rules of a fleet's stream: the desired workers, the registered runners, the dispatcher.

A runner is registered until it is removed. A blueprint's name belongs to one registered
runner: the first that offered it.

A heartbeat is not recorded; only a change of a runner is.
"""

from collections.abc import Mapping
from datetime import datetime, timedelta
from types import MappingProxyType
from typing import Any, Final, NamedTuple

from msgspec import Struct
from msgspec.structs import replace

from cueline.deciders.decider import Decider
from cueline.deciders.heartbeat import HeartbeatTimes
from cueline.errors import BlueprintConflictError, FencedError
from cueline.events.agent import AgentSpec
from cueline.events.fleet import (
    CLUSTER,
    FLEET_STREAM,
    FleetEvent,
    FleetReport,
    FleetTaken,
    RunnerBack,
    RunnerRegistered,
    RunnerRemoved,
    RunnerStale,
    ScaleAsked,
    WorkerGroup,
    WorkerKind,
)


class Group(NamedTuple):
    """A `WorkerGroup` in a hashable form, for use as a key."""

    kind: WorkerKind
    labels: tuple[tuple[str, str], ...] = ()
    resources: tuple[tuple[str, float], ...] = ()
    per_node: int | None = None


HOSTS = Group("host")
RUNNERS = Group("runner")


class Range(NamedTuple):
    """The desired number of workers of a group."""

    least: int
    most: int


NONE = Range(0, 0)
RESERVED: Final = frozenset({"default"})
"""The names of cueline's built-in agents, which no runner can offer."""


class Registration(Struct, frozen=True):
    """A registered runner."""

    fact: RunnerRegistered
    removed_at: datetime | None = None
    """When the runner is removed, unless it sends a heartbeat earlier; None while it is online."""


class Blueprint(Struct, frozen=True):
    """An agent that a runner offers, or has offered."""

    agent: AgentSpec
    runner: str
    """The incarnation that offers the agent; empty: no runner offers it now."""


class FleetState(Struct, frozen=True):
    """The desired state of a fleet, its runners, and its dispatcher."""

    epoch: int = 0
    up: str = ""
    """The id of the dispatcher's `cueline up`."""
    wanted: Mapping[Group, Range] = MappingProxyType({})
    """The desired numbers of workers by group, including 0."""
    runners: Mapping[str, Registration] = MappingProxyType({})
    """The registered runners, by incarnation."""
    blueprints: Mapping[str, Blueprint] = MappingProxyType({})
    """All agents that were ever offered, by name."""

    def online(self, blueprint: str) -> str:
        """Return the online runner that accepts runs of *blueprint*; empty without one."""
        offered = self.blueprints.get(blueprint)
        runner = None if offered is None else self.runners.get(offered.runner)
        return runner.fact.incarnation if runner and runner.removed_at is None else ""

    def removal_of(self, blueprint: str) -> datetime | None:
        """Return the removal time of the stale runner of *blueprint*; None without a stale one."""
        offered = self.blueprints.get(blueprint)
        runner = None if offered is None else self.runners.get(offered.runner)
        return None if runner is None else runner.removed_at


class TakeFleet(Struct, frozen=True):
    """The command to take over the fleet, with numbers of workers from the command line."""

    taken: FleetTaken
    asks: tuple[ScaleAsked, ...] = ()
    """The numbers of workers to record in any case."""
    defaults: tuple[ScaleAsked, ...] = ()
    """The numbers of workers to record for kinds of workers that nobody has requested yet."""


FleetCommand = ScaleAsked | FleetReport | TakeFleet


def key_of(group: WorkerGroup) -> Group:
    """Return *group* in its hashable form."""
    labels, resources = sorted(group.labels.items()), sorted(group.resources.items())
    return Group(group.kind, tuple(labels), tuple(resources), group.per_node)


def group_of(key: Group) -> WorkerGroup:
    """Return the `WorkerGroup` of the hashable form *key*."""
    return WorkerGroup(
        kind=key.kind,
        labels=dict(key.labels),
        resources=dict(key.resources),
        per_node=key.per_node,
    )


def decide(command: FleetCommand, state: FleetState) -> list[FleetEvent]:
    """Return the events of *command*.

    Raises:
        FencedError: another dispatcher has the fleet; stop.
        BlueprintConflictError: a runner cannot offer a name; the registration is refused.
    """
    match command:
        case TakeFleet(taken=taken):
            _check(taken, state)
            return [taken, *_asks(command, state)]
        case ScaleAsked():
            return [] if _is_wanted(command, state) else [command]
        case RunnerRegistered():
            _check(command, state)
            _check_names(command, state)
            return [command]
        case RunnerStale() | RunnerBack() | RunnerRemoved():
            _check(command, state)
            return [command] if _changes(command, state) else []
        case _:
            _check(command, state)
            return [command]


def evolve(state: FleetState, event: FleetEvent) -> FleetState:
    """Return the state after *event*."""
    match event:
        case ScaleAsked(group=group, least=least, most=most):
            wanted = {**state.wanted, key_of(group): Range(least, most)}
            return replace(state, wanted=wanted)
        case FleetTaken(epoch=epoch, up=up):
            return replace(state, epoch=epoch, up=up)
        case RunnerRegistered():
            return _registered(state, event)
        case RunnerStale(incarnation=incarnation, removed_at=removed_at):
            return _with_removal(state, incarnation, removed_at)
        case RunnerBack(incarnation=incarnation):
            return _with_removal(state, incarnation, None)
        case RunnerRemoved(incarnation=incarnation):
            left = {name: each for name, each in state.runners.items() if name != incarnation}
            return replace(state, runners=left, blueprints=_withdrawn(state, incarnation))
        case _:
            return state


def _check_names(registered: RunnerRegistered, state: FleetState) -> None:
    """Raise for a name of another runner or of cueline itself, and for a repeated name.

    A new incarnation of a runner takes over from a stale one (C30).
    """
    seen: set[str] = set()
    for agent in registered.blueprints:
        if agent.name in RESERVED:
            raise BlueprintConflictError(agent.name, CLUSTER)
        if agent.name in seen:
            raise BlueprintConflictError(agent.name, registered.incarnation)
        seen.add(agent.name)
        offered = state.blueprints.get(agent.name)
        owner = None if offered is None else state.runners.get(offered.runner)
        if owner is None or owner.fact.incarnation == registered.incarnation:
            continue
        is_same = bool(registered.runner) and owner.fact.runner == registered.runner
        if owner.removed_at is None or not is_same:
            raise BlueprintConflictError(agent.name, owner.fact.incarnation)


def _changes(fact: RunnerStale | RunnerBack | RunnerRemoved, state: FleetState) -> bool:
    registered = state.runners.get(fact.incarnation)
    if registered is None:
        return False
    is_stale = registered.removed_at is not None
    return fact.type == "RunnerRemoved" or is_stale == (fact.type == "RunnerBack")


def _registered(state: FleetState, fact: RunnerRegistered) -> FleetState:
    offered = {each.name: Blueprint(each, fact.incarnation) for each in fact.blueprints}
    return replace(
        state,
        runners={**state.runners, fact.incarnation: Registration(fact)},
        blueprints={**_withdrawn(state, fact.incarnation), **offered},
    )


def _with_removal(state: FleetState, incarnation: str, at: datetime | None) -> FleetState:
    if (there := state.runners.get(incarnation)) is None:
        return state
    runners = {**state.runners, incarnation: replace(there, removed_at=at)}
    return replace(state, runners=runners)


def _withdrawn(state: FleetState, incarnation: str) -> dict[str, Blueprint]:
    """Return the blueprints, with no runner for those that *incarnation* offers."""
    return {
        name: replace(each, runner="") if each.runner == incarnation else each
        for name, each in state.blueprints.items()
    }


def _asks(command: TakeFleet, state: FleetState) -> list[ScaleAsked]:
    if command.taken.up == state.up:
        return []
    asked = {group.kind for group in state.wanted} | {each.group.kind for each in command.asks}
    defaults = [each for each in command.defaults if each.group.kind not in asked]
    return [each for each in (*command.asks, *defaults) if not _is_wanted(each, state)]


def _is_wanted(asked: ScaleAsked, state: FleetState) -> bool:
    return state.wanted.get(key_of(asked.group)) == (asked.least, asked.most)


def _check(fact: FleetReport, state: FleetState) -> None:
    if fact.epoch < state.epoch:
        raise FencedError(FLEET_STREAM, fact.epoch, state.epoch)


FLEET: Decider[FleetCommand, FleetState, FleetEvent] = Decider(FleetState(), decide, evolve)


Change = RunnerStale | RunnerBack | RunnerRemoved


def changes(
    state: FleetState,
    beats: Mapping[str, datetime],
    now: datetime,
    *,
    since: datetime,
    times: HeartbeatTimes,
) -> list[Change]:
    """Return the facts about runners that became stale, came back or were removed.

    Args:
        state: the fleet's.
        beats: the last heartbeat of each runner, by incarnation.
        now: the time.
        since: when the dispatcher began to read heartbeats; earlier silence does not count.
        times: see `HeartbeatTimes`.
    """
    found: list[Change] = []
    for incarnation, runner in state.runners.items():
        beat = beats.get(incarnation)
        heard = since if beat is None else max(beat, since)
        silent = (now - heard).total_seconds()
        said: dict[str, Any] = {"incarnation": incarnation, "epoch": state.epoch, "at": now}
        why = f"it is silent for {silent:.0f} s"
        is_stale = runner.removed_at is not None
        if silent >= times.removal:
            found.append(RunnerRemoved(reason=why, **said))
        elif not is_stale and silent >= times.stale:
            until = heard + timedelta(seconds=times.removal)
            found.append(RunnerStale(reason=why, removed_at=until, **said))
        elif is_stale and beat is not None and (now - beat).total_seconds() < times.stale:
            found.append(RunnerBack(**said))
    return found
