"""The facts of one circuit breaker: stream `breaker-<tenant>/<dependency>`.

The stream has no owner: every append is a compare-and-set on its version. A dependency
is a model of a provider account, an account alone (held when its key is refused for
a named time, never opened), or a tool with a breaker.
"""

from typing import Literal

from pydantic import AwareDatetime

from cueline.events.fact import Fact


class FailureCounted(Fact):
    """A call failed transiently; enough failures within the window open the breaker."""

    type: Literal["FailureCounted"] = "FailureCounted"
    at: AwareDatetime
    kind: str
    """The error code: `overloaded`, `timeout` …"""
    successes: int = 0
    """The successful calls of the process since its previous counted failure."""


class BreakerOpened(Fact):
    """Calls to the dependency are blocked until a probe succeeds."""

    type: Literal["BreakerOpened"] = "BreakerOpened"
    at: AwareDatetime
    until: AwareDatetime
    """The time from which a probe may start."""
    kind: str
    """The last failure."""
    openings: int = 1
    """The number of consecutive openings; each opening waits longer, up to a limit."""


class BreakerHeld(Fact):
    """The provider requested a pause; all calls of the dependency wait."""

    type: Literal["BreakerHeld"] = "BreakerHeld"
    at: AwareDatetime
    until: AwareDatetime
    kind: str


class BreakerHalfOpened(Fact):
    """The process that appended this fact may start one call as a probe."""

    type: Literal["BreakerHalfOpened"] = "BreakerHalfOpened"
    at: AwareDatetime
    probe: str
    """The effect that probes the dependency, as `<session>/<effect>`."""
    until: AwareDatetime
    """The time at which a probe without an outcome counts as lost; then another may start."""


class BreakerClosed(Fact):
    """The probe succeeded, or a person reset the breaker; calls are allowed again."""

    type: Literal["BreakerClosed"] = "BreakerClosed"
    at: AwareDatetime
    by: str = ""
    """The person who reset the breaker, which also ends a hold; empty after a probe."""


BreakerEvent = FailureCounted | BreakerOpened | BreakerHeld | BreakerHalfOpened | BreakerClosed
