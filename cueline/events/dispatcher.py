"""The facts of a dispatcher and of the runners and hosts it cares for.

`at` is the dispatcher's own clock, for people: beside `recorded_at`, the log's,
it shows how far they are apart. No rule reads it.
"""

from typing import Literal

from pydantic import AwareDatetime

from cueline.events.fact import Fact


class DispatcherStarted(Fact):
    """A dispatcher took charge of the log; its epoch is in every order."""

    type: Literal["DispatcherStarted"] = "DispatcherStarted"
    incarnation: str
    machine: str
    pid: int
    epoch: int
    recover: bool
    """Whether it takes the sessions that others left."""
    up: str = ""
    """Of one `up` the same, however often its dispatcher is started again."""
    at: AwareDatetime


class HostLost(Fact):
    """A host died; its sessions go to others."""

    type: Literal["HostLost"] = "HostLost"
    incarnation: str
    evidence: str
    at: AwareDatetime


class RunnerRegistered(Fact):
    """A runner takes calls."""

    type: Literal["RunnerRegistered"] = "RunnerRegistered"
    incarnation: str
    machine: str
    pid: int
    at: AwareDatetime


class RunnerRemoved(Fact):
    """A runner is gone: what it had started and not answered is lost or in doubt."""

    type: Literal["RunnerRemoved"] = "RunnerRemoved"
    incarnation: str
    evidence: str
    at: AwareDatetime


class DispatcherStopped(Fact):
    """A dispatcher ended on purpose."""

    type: Literal["DispatcherStopped"] = "DispatcherStopped"
    incarnation: str
    at: AwareDatetime


DispatcherEvent = (
    DispatcherStarted | HostLost | RunnerRegistered | RunnerRemoved | DispatcherStopped
)
