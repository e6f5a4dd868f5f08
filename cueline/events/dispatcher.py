"""The facts of the dispatchers of a log: who had the lease, and when.

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


class DispatcherStopped(Fact):
    """A dispatcher ended on purpose."""

    type: Literal["DispatcherStopped"] = "DispatcherStopped"
    incarnation: str
    at: AwareDatetime


DispatcherEvent = DispatcherStarted | DispatcherStopped
