"""The facts of one breaker: stream `breaker-<tenant>/<dependency>`.

Nobody owns it: every append is a compare-and-set on its version. A dependency
is a model of a provider's account, an account alone (which can be held, never
opened), or a tool that asks for a breaker.
"""

from typing import Literal

from pydantic import AwareDatetime

from cueline.events.fact import Fact


class FailureCounted(Fact):
    """A call failed in a way that may pass; so many within a while open the breaker."""

    type: Literal["FailureCounted"] = "FailureCounted"
    at: AwareDatetime
    kind: str
    """Of the failure: `overloaded`, `timeout` …"""
    successes: int = 0
    """Calls that went well, as its process saw them, since the last failure that it counted."""


class BreakerOpened(Fact):
    """The dependency is left alone until a probe may find out whether it is well again."""

    type: Literal["BreakerOpened"] = "BreakerOpened"
    at: AwareDatetime
    until: AwareDatetime
    """When a probe may go out."""
    kind: str
    """Of the last failure."""
    openings: int = 1
    """How often in a row: each wait is longer than the one before, up to a limit."""


class BreakerHeld(Fact):
    """The provider asked to be left alone for a while; who shares the account waits."""

    type: Literal["BreakerHeld"] = "BreakerHeld"
    at: AwareDatetime
    until: AwareDatetime
    kind: str


class BreakerHalfOpened(Fact):
    """One call may go out, as a probe; whoever appended this has it."""

    type: Literal["BreakerHalfOpened"] = "BreakerHalfOpened"
    at: AwareDatetime
    probe: str
    """The effect that is the probe, as `<session>/<effect>`."""
    until: AwareDatetime
    """Without an outcome by then the probe counts as lost, and another may go."""


class BreakerClosed(Fact):
    """The probe went well, or a person reset the breaker: calls go out again."""

    type: Literal["BreakerClosed"] = "BreakerClosed"
    at: AwareDatetime
    by: str = ""
    """The person who reset it, which ends a hold, too; empty after a probe."""


BreakerEvent = FailureCounted | BreakerOpened | BreakerHeld | BreakerHalfOpened | BreakerClosed
