"""The desired and existing hosts and runners of a log; `cueline up` starts and retires them."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import get_args

from cueline.actors.fleet_log import FleetLog
from cueline.actors.presence import living
from cueline.deciders.fleet import Group, Range
from cueline.errors import ConfigError
from cueline.events.fleet import ScaleAsked, WorkerGroup, WorkerKind
from cueline.runtime.open_log import OpenLog

Count = int | tuple[int, int]
"""A number of workers, or the minimum and maximum."""
MOST = 1000
"""The most workers of a group; more would take the machines down."""
LEAST_AMOUNT = 0.0001
"""The smallest amount of a resource for one worker that Ray counts."""
_WORD = re.compile(r"[A-Za-z0-9]([A-Za-z0-9._/-]*[A-Za-z0-9])?")
_RESERVED = {"CPU": "cpus", "GPU": "gpus"}


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupRow:
    """A group of equal workers, and their desired number."""

    kind: WorkerKind
    """`host` or `runner`."""
    labels: Mapping[str, str]
    """The labels of the Ray nodes on which the workers run."""
    resources: Mapping[str, float]
    """The resources that each worker takes."""
    per_node: int | None
    """The most workers on one node."""
    least: int
    most: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ScaleReceipt:
    """The receipt of a request for another number of workers."""

    recorded: bool
    """False: the numbers were the same before."""
    groups: tuple[GroupRow, ...]
    """All desired groups."""
    up: bool
    """Whether a running `cueline up` carries out the request now; otherwise the next `up` does."""


async def scale(
    log: OpenLog,
    wanted: Mapping[WorkerKind, Count | None],
    *,
    per_node: int | None,
    labels: Mapping[str, str],
    resources: Mapping[str, float],
    by: str,
) -> ScaleReceipt:
    """Record the *wanted* numbers of workers of each kind; see `Client.scale`."""
    _check(per_node, labels, resources)
    asks = []
    for kind, count in wanted.items():
        if count is not None:
            least, most = range_of(f"{kind}s", count)
            if kind == "host" and least == 0 < most and not (labels or resources or per_node):
                raise ConfigError("hosts", f"0..{most} begins at 0: some host has to look for work")
            group = WorkerGroup(
                kind=kind, labels=dict(labels), resources=dict(resources), per_node=per_node
            )
            now = log.clock.now()
            asks.append(ScaleAsked(group=group, least=least, most=most, by=by, at=now))
    if not asks:
        raise ConfigError("scale", "name a number of `hosts` or of `runners`")
    fleet = FleetLog(log.journal())
    recorded = await fleet.record(asks, f"user:{by}")
    state = await fleet.read()
    present = await living(log.board, log.clock.now())
    return ScaleReceipt(
        recorded=bool(recorded),
        groups=rows_of(state.wanted),
        up=any(each.role == "dispatcher" for each in present),
    )


def rows_of(wanted: Mapping[Group, Range]) -> tuple[GroupRow, ...]:
    """Return the groups with at least one desired worker."""
    order = get_args(WorkerKind)
    return tuple(
        GroupRow(
            kind=group.kind,
            labels=dict(group.labels),
            resources=dict(group.resources),
            per_node=group.per_node,
            least=count.least,
            most=count.most,
        )
        for group, count in sorted(wanted.items(), key=lambda each: order.index(each[0].kind))
        if count.most
    )


def range_of(name: str, count: Count) -> Range:
    """Return the range of a number of workers.

    Raises:
        ConfigError: the number is negative or too large, or the minimum is above the maximum.
    """
    least, most = (count, count) if isinstance(count, int) else count
    if not 0 <= least <= most:
        raise ConfigError(name, f"{least}..{most} is no range: it is 0 or more, the least first")
    if most > MOST:
        raise ConfigError(name, f"{most} is more than {MOST}")
    return Range(least, most)


def _check(per_node: int | None, labels: Mapping[str, str], resources: Mapping[str, float]) -> None:
    if per_node is not None and per_node < 1:
        raise ConfigError("per_node", f"{per_node} is less than 1: no node could hold one")
    for word in (*labels, *labels.values(), *resources):
        if not _WORD.fullmatch(word):
            reason = "letters, digits and . _ - / inside are what Ray takes"
            raise ConfigError("labels and resources", f"{word!r} is not a name: {reason}")
    for name, amount in resources.items():
        if name in _RESERVED:
            raise ConfigError("resources", f"{name} is called {_RESERVED[name]} here")
        if not LEAST_AMOUNT <= amount < float("inf"):
            reason = f"Ray counts from {LEAST_AMOUNT} on; leave it out, or name more"
            raise ConfigError("resources", f"{name} is {amount:g}, and {reason}")
