"""The facts of one circuit breaker: stream `breaker-<tenant>/<dependency>`.

The stream has no owner: every append is a compare-and-set on its version. A dependency
is a model of a provider account, an account alone (held when its key is refused for
a named time, never opened), or a tool with a breaker.
"""

from typing import Literal

from pydantic import AwareDatetime

from cueline.events.fact import Fact


class FailureCounted(Fact):
    """A transient failure; enough failures within the window open the breaker."""

    type: Literal["FailureCounted"] = "FailureCounted"
    at: AwareDatetime
    kind: str
    """The error code: `overloaded`, `timeout` …"""
    successes: int = 0
    """Successful calls that its process saw since its last counted failure."""


class BreakerOpened(Fact):
    """Calls to the dependency are blocked until a probe succeeds."""

    type: Literal["BreakerOpened"] = "BreakerOpened"
    at: AwareDatetime
    until: AwareDatetime
    """The time from which a probe may start."""
    kind: str
    """The last failure."""
    openings: int = 1
    """Consecutive openings: each wait is longer than the previous one, up to a limit."""


class BreakerHeld(Fact):
    """The provider named a pause; all calls of the dependency wait."""

    type: Literal["BreakerHeld"] = "BreakerHeld"
    at: AwareDatetime
    until: AwareDatetime
    kind: str


class BreakerHalfOpened(Fact):
    """One call may start as a probe: that of the process that appended this fact."""

    type: Literal["BreakerHalfOpened"] = "BreakerHalfOpened"
    at: AwareDatetime
    probe: str
    """The effect that is the probe, as `<session>/<effect>`."""
    until: AwareDatetime
    """Without an outcome by this time the probe counts as lost, and another may start."""


class BreakerClosed(Fact):
    """The probe succeeded, or a person reset the breaker: calls go out again."""

    type: Literal["BreakerClosed"] = "BreakerClosed"
    at: AwareDatetime
    by: str = ""
    """The person who reset it, which also ends a hold; empty after a probe."""


BreakerEvent = FailureCounted | BreakerOpened | BreakerHeld | BreakerHalfOpened | BreakerClosed
