"""The rules of a fleet's stream: how many workers are wanted, and whose facts count."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import NamedTuple

from msgspec import Struct

from cueline.deciders.decider import Decider
from cueline.errors import FencedError
from cueline.events.fleet import (
    FLEET_STREAM,
    FleetEvent,
    FleetReport,
    FleetTaken,
    ScaleAsked,
    WorkerGroup,
    WorkerKind,
)


class Group(NamedTuple):
    """A `WorkerGroup` as a key."""

    kind: WorkerKind
    labels: tuple[tuple[str, str], ...] = ()
    resources: tuple[tuple[str, float], ...] = ()
    per_node: int | None = None


HOSTS = Group("host")
RUNNERS = Group("runner")


class Range(NamedTuple):
    """How many workers of a group are wanted."""

    least: int
    most: int


NONE = Range(0, 0)


class FleetState(Struct, frozen=True):
    """What is wanted of a fleet, and which dispatcher has it."""

    epoch: int = 0
    up: str = ""
    """The `up` of that dispatcher."""
    wanted: Mapping[Group, Range] = MappingProxyType({})
    """By group; also those of which none are wanted any more."""


class TakeFleet(Struct, frozen=True):
    """A dispatcher takes over; the first of an `up` asks for what that was started with."""

    taken: FleetTaken
    asks: tuple[ScaleAsked, ...] = ()
    """Asked for in any case."""
    defaults: tuple[ScaleAsked, ...] = ()
    """Asked for if nobody ever asked for workers of that kind."""


FleetCommand = FleetEvent | TakeFleet


def key_of(group: WorkerGroup) -> Group:
    """Return the group as a key."""
    labels, resources = sorted(group.labels.items()), sorted(group.resources.items())
    return Group(group.kind, tuple(labels), tuple(resources), group.per_node)


def group_of(key: Group) -> WorkerGroup:
    """Return the group of a key."""
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
    """
    match command:
        case TakeFleet(taken=taken):
            _check(taken, state)
            return [taken, *_asks(command, state)]
        case ScaleAsked():
            return [] if _is_wanted(command, state) else [command]
        case _:
            _check(command, state)
            return [command]


def evolve(state: FleetState, event: FleetEvent) -> FleetState:
    """Return the state after *event*."""
    match event:
        case ScaleAsked(group=group, least=least, most=most):
            wanted = {**state.wanted, key_of(group): Range(least, most)}
            return FleetState(state.epoch, state.up, wanted)
        case FleetTaken(epoch=epoch, up=up):
            return FleetState(epoch, up, state.wanted)
        case _:
            return state


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
