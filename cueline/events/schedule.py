"""When a session starts, if not at once, and whether others follow it.

A session with a schedule is recorded, and rests until its time. One that repeats is the
first of a series: the append with which it starts its work asks for the next one.
"""

import re
from datetime import UTC, datetime, timedelta
from functools import partial
from operator import is_, not_

from pydantic import AwareDatetime, Field

from cueline.events.number import Seconds
from cueline.events.part import Part

_IN_SERIES = re.compile(r"(.+)\.\d{8}t\d{6}z")


class Schedule(Part):
    """The time at which a session starts its work."""

    at: AwareDatetime
    every_seconds: Seconds | None = Field(default=None, ge=1, exclude_if=partial(is_, None))
    """Time between the starts of its series; None: it starts once."""
    first: str = Field(default="", exclude_if=not_)
    """The first session of its series; empty: itself."""


def time_after(schedule: Schedule, now: datetime) -> datetime | None:
    """Return the next time of the series that is not over: times that were missed are left out."""
    if schedule.every_seconds is None:
        return None
    every = timedelta(seconds=schedule.every_seconds)
    return schedule.at + max(1, (now - schedule.at) // every + 1) * every


def stream_at(first: str, at: datetime) -> str:
    """Return the stream of the session of a series that starts at that time."""
    return f"{first}.{at.astimezone(UTC):%Y%m%dt%H%M%Sz}"


def first_of(stream: str) -> str | None:
    """Return the session whose series *stream* may belong to, by its name."""
    found = _IN_SERIES.fullmatch(stream)
    return found[1] if found else None
