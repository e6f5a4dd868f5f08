"""The rules of one breaker: closed → open → half-open → closed or open.

Failures that may pass are counted, permanent ones never (C3, C4). While it is
open nothing counts: a call that went out before it opened says nothing new.
Half-open admits exactly one probe, whoever wins the append. A provider that
limits the rate of calls, and says for how long, is held and not counted
against: it works, and it says when.
"""

from datetime import datetime, timedelta
from typing import Literal, NamedTuple, assert_never

from msgspec import Struct
from msgspec.structs import replace

from cueline.deciders.decider import Decider
from cueline.deciders.retry import LONGEST_WAIT_SECONDS
from cueline.events.agent import BreakerPolicy
from cueline.events.breaker import (
    BreakerClosed,
    BreakerEvent,
    BreakerHalfOpened,
    BreakerHeld,
    BreakerOpened,
    FailureCounted,
)
from cueline.events.failure import OURS, TRANSIENT

PROBE_SECONDS = 120.0
"""A probe without an outcome by then is lost; its own session goes on with it before."""
LONGEST_OPEN_SECONDS = 600.0
"""Doubled time and again, the time-out stops growing here, unless it began longer."""
_DEFAULTS = BreakerPolicy()
MOST_FAILURES = 1000
"""No threshold is higher, so no more are remembered."""


class Failure(NamedTuple):
    """A failure that counts."""

    at: datetime
    successes: int


class BreakerState(Struct, frozen=True):
    """One breaker, folded."""

    phase: Literal["closed", "open", "half_open"] = "closed"
    since: datetime | None = None
    """When it came to the phase; None when it was never anything but closed."""
    until: datetime | None = None
    """When the next probe may go."""
    failures: tuple[Failure, ...] = ()
    openings: int = 0
    """In a row."""
    probe: str = ""
    held_until: datetime | None = None
    kind: str = ""
    """Of the failure that opened or held it."""


class Fail(Struct, frozen=True):
    """The call *key* failed."""

    key: str
    kind: str
    at: datetime
    policy: BreakerPolicy
    successes: int = 0
    retry_after: float | None = None


class Succeed(Struct, frozen=True):
    """The call *key* was answered."""

    key: str
    at: datetime


class Hold(Struct, frozen=True):
    """The provider asked to be left alone."""

    at: datetime
    seconds: float
    kind: str


class Probe(Struct, frozen=True):
    """The call *key* wants to find out whether the dependency is well again."""

    key: str
    at: datetime
    early: bool = False
    """A person wants it to go out before its time."""


class Reset(Struct, frozen=True):
    """A person wants calls to go out again, whatever is known."""

    at: datetime
    by: str


BreakerCommand = Fail | Succeed | Hold | Probe | Reset


def decide(command: BreakerCommand, state: BreakerState) -> list[BreakerEvent]:
    """Say what *command* makes happen."""
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
    for _ in range(state.openings):  # a power would overflow
        wait = min(wait * 2, max(first, LONGEST_OPEN_SECONDS))
    if command.kind in OURS:
        wait = 0.0  # nothing was found out: the next probe may go at once
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
    """Say what *event* changed."""
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
    """Whether a call may go out now."""

    answer: Literal["go", "probe", "wait"]
    until: datetime | None = None
    """Of a wait."""
    code: BreakerCode | None = None
    """Why it waits."""
    kind: str = ""
    """Of the failure that opened or held the breaker."""


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
    """Say whether the call *key* may go out at *now*, by what is known.

    With *early* a person wants the probe of an open breaker before its time.
    """
    if state.held_until is not None and state.held_until > now:
        return Admission("wait", state.held_until, "breaker_held", state.kind)
    if state.phase == "closed" or _probes(state, key):
        return GO
    assert state.until is not None, "what is not closed has a time"
    if state.until <= now or (early and state.phase == "open"):
        return _PROBE
    if state.phase == "half_open":
        # The probe may fail long before it would count as lost: look again by then.
        soon = now + timedelta(seconds=policy.timeout_seconds)
        return Admission("wait", min(state.until, soon), "breaker_probing", state.kind)
    return Admission("wait", state.until, "breaker_open", state.kind)


BREAKER: Decider[BreakerCommand, BreakerState, BreakerEvent] = Decider(
    BreakerState(), decide, evolve
)
