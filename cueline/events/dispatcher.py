"""The facts of a dispatcher and of its runners and hosts.

`at` is the dispatcher's own clock, for people: with `recorded_at`, the log's clock,
it shows the difference of the two. No rule reads it.
"""

from typing import Literal

from pydantic import AwareDatetime

from cueline.events.fact import Fact


class DispatcherStarted(Fact):
    """A dispatcher acquired the log; its epoch is in every order."""

    type: Literal["DispatcherStarted"] = "DispatcherStarted"
    incarnation: str
    machine: str
    pid: int
    epoch: int
    recover: bool
    """Whether it resumes the sessions that others left."""
    up: str = ""
    """The id of its `up`; the same after each restart of the dispatcher."""
    at: AwareDatetime


class HostLost(Fact):
    """A host died; its sessions go to others."""

    type: Literal["HostLost"] = "HostLost"
    incarnation: str
    evidence: str
    at: AwareDatetime


class RunnerRegistered(Fact):
    """A runner accepts calls."""

    type: Literal["RunnerRegistered"] = "RunnerRegistered"
    incarnation: str
    machine: str
    pid: int
    at: AwareDatetime


class RunnerRemoved(Fact):
    """A runner is gone: its unfinished calls are lost or in doubt."""

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
