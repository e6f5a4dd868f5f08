"""The rules of one circuit breaker: closed → open → half-open → closed or open.

Transient failures count, permanent ones do not (C3, C4). While the breaker is open no
failure counts, because its call started before the opening. Half-open admits one
probe: the first append wins. A rate limit with a `Retry-After` holds the breaker
without a counted failure.
"""

from datetime import datetime, timedelta
from typing import Literal, NamedTuple, assert_never

from msgspec import Struct
from msgspec.structs import replace

from cueline.deciders.decider import Decider
from cueline.deciders.retry import LONGEST_WAIT_SECONDS
from cueline.events.agent_parts import BreakerPolicy
from cueline.events.breaker import (
    BreakerClosed,
    BreakerEvent,
    BreakerHalfOpened,
    BreakerHeld,
    BreakerOpened,
    FailureCounted,
)
from cueline.events.codes import OURS, TRANSIENT

PROBE_SECONDS = 120.0
"""The seconds after which a probe without an outcome counts as lost."""
LONGEST_OPEN_SECONDS = 600.0
"""The longest time-out after doublings, in seconds, unless the first time-out is longer."""
_DEFAULTS = BreakerPolicy()
MOST_FAILURES = 1000
"""The largest allowed threshold, and the most failures in a breaker's state."""


class Failure(NamedTuple):
    """A counted failure."""

    at: datetime
    successes: int


class BreakerState(Struct, frozen=True):
    """The folded state of one breaker."""

    phase: Literal["closed", "open", "half_open"] = "closed"
    since: datetime | None = None
    """The time at which the phase began; None if the breaker was always closed."""
    until: datetime | None = None
    """The time from which the next probe may start."""
    failures: tuple[Failure, ...] = ()
    openings: int = 0
    """The number of consecutive openings."""
    probe: str = ""
    held_until: datetime | None = None
    kind: str = ""
    """The failure that opened or held the breaker."""


class Fail(Struct, frozen=True):
    """The command to record that the call *key* failed."""

    key: str
    kind: str
    at: datetime
    policy: BreakerPolicy
    successes: int = 0
    retry_after: float | None = None


class Succeed(Struct, frozen=True):
    """The command to record that the call *key* succeeded."""

    key: str
    at: datetime


class Hold(Struct, frozen=True):
    """The command to hold the breaker, because the provider requested a pause."""

    at: datetime
    seconds: float
    kind: str


class Probe(Struct, frozen=True):
    """The command to make the call *key* the probe."""

    key: str
    at: datetime
    early: bool = False
    """Whether a person requested the probe before its time."""


class Reset(Struct, frozen=True):
    """The command of a person to close the breaker."""

    at: datetime
    by: str


BreakerCommand = Fail | Succeed | Hold | Probe | Reset


def decide(command: BreakerCommand, state: BreakerState) -> list[BreakerEvent]:
    """Return the events of *command*."""
    match command:
        case Fail():
            return _failed(command, state)
        case Succeed(key=key, at=at):
            return [BreakerClosed(at=at)] if _probes(state, key) else []
        case Hold(at=at, seconds=seconds, kind=kind):
            until = at + timedelta(seconds=min(seconds, LONGEST_WAIT_SECONDS))
            longer = until > at and (state.held_until is None or until > state.held_until)
            return [BreakerHeld(at=at, until=until, kind=kind)] if longer else []
        case Probe(key=key, at=at, early=early):
            if admission(state, key, at, early=early).answer != "probe":
                return []
            until = at + timedelta(seconds=PROBE_SECONDS)
            return [BreakerHalfOpened(at=at, probe=key, until=until)]
        case Reset(at=at, by=by):
            held = state.held_until is not None and state.held_until > at
            closed = state.phase == "closed" and not state.failures and not held
            return [] if closed else [BreakerClosed(at=at, by=by)]
        case _:
            assert_never(command)


def _failed(command: Fail, state: BreakerState) -> list[BreakerEvent]:
    at, policy = command.at, command.policy
    if _probes(state, command.key):
        answered = command.kind not in TRANSIENT | OURS
        return [BreakerClosed(at=at)] if answered else [_opened(command, state)]
    paced = command.kind == "rate_limited" and command.retry_after
    counts = command.kind in TRANSIENT and not paced
    if state.phase != "closed" or not counts or not policy.threshold:
        return []
    counted = FailureCounted(at=at, kind=command.kind, successes=command.successes)
    return [counted, _opened(command, state)] if _trips(command, state) else [counted]


def _trips(command: Fail, state: BreakerState) -> bool:
    policy = command.policy
    since = command.at - timedelta(seconds=policy.window_seconds)
    recent = [f for f in (*state.failures, _failure(command)) if f.at > since]
    calls = len(recent) + sum(failure.successes for failure in recent)
    return (
        len(recent) >= policy.threshold
        and calls >= policy.min_calls
        and len(recent) >= policy.failure_rate * calls
    )


def _failure(command: Fail) -> Failure:
    return Failure(command.at, command.successes)


def _opened(command: Fail, state: BreakerState) -> BreakerOpened:
    first = command.policy.timeout_seconds
    wait = first
    for _ in range(state.openings):  # a larger power would overflow
        wait = min(wait * 2, max(first, LONGEST_OPEN_SECONDS))
    if command.kind in OURS:
        wait = 0.0  # the probe brought no result: the next one may start at once
    wait = max(wait, min(command.retry_after or 0.0, LONGEST_WAIT_SECONDS))
    return BreakerOpened(
        at=command.at,
        until=command.at + timedelta(seconds=wait),
        kind=command.kind,
        openings=state.openings + (command.kind not in OURS),
    )


def _probes(state: BreakerState, key: str) -> bool:
    return state.phase == "half_open" and state.probe == key


def evolve(state: BreakerState, event: BreakerEvent) -> BreakerState:
    """Return the state after *event*."""
    match event:
        case FailureCounted(at=at, successes=successes):
            failures = (*state.failures, Failure(at, successes))[-MOST_FAILURES:]
            return replace(state, failures=failures)
        case BreakerOpened(at=at, until=until, kind=kind, openings=openings):
            return replace(
                state,
                phase="open",
                since=at,
                until=until,
                failures=(),
                openings=openings,
                probe="",
                kind=kind,
            )
        case BreakerHeld(until=until, kind=kind):
            return replace(state, held_until=until, kind=kind)
        case BreakerHalfOpened(at=at, probe=probe, until=until):
            return replace(state, phase="half_open", since=at, until=until, probe=probe)
        case BreakerClosed(at=at, by=by):
            return BreakerState(since=at, held_until=None if by else state.held_until)
        case _:
            assert_never(event)


BreakerCode = Literal["breaker_open", "breaker_held", "breaker_probing"]


class Admission(Struct, frozen=True):
    """The answer whether a call may start now, and the end and reason of a wait."""

    answer: Literal["go", "probe", "wait"]
    until: datetime | None = None
    """The end of the wait."""
    code: BreakerCode | None = None
    """The reason of the wait."""
    kind: str = ""
    """The failure that opened or held the breaker."""


GO = Admission("go")
_PROBE = Admission("probe")


def admission(
    state: BreakerState,
    key: str,
    now: datetime,
    policy: BreakerPolicy = _DEFAULTS,
    *,
    early: bool = False,
) -> Admission:
    """Return whether the call *key* may start at *now*.

    With *early*, a person requested the probe of an open breaker before its time.
    """
    if state.held_until is not None and state.held_until > now:
        return Admission("wait", state.held_until, "breaker_held", state.kind)
    if state.phase == "closed" or _probes(state, key):
        return GO
    assert state.until is not None, "what is not closed has a time"
    if state.until <= now or (early and state.phase == "open"):
        return _PROBE
    if state.phase == "half_open":
        # The probe may fail long before it counts as lost: look again by then.
        soon = now + timedelta(seconds=policy.timeout_seconds)
        return Admission("wait", min(state.until, soon), "breaker_probing", state.kind)
    return Admission("wait", state.until, "breaker_open", state.kind)


BREAKER: Decider[BreakerCommand, BreakerState, BreakerEvent] = Decider(
    BreakerState(), decide, evolve
)
