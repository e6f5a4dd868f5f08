"""When a session starts, if not at once, and whether others follow it.

A session with a schedule is recorded, and rests until its time. One that repeats is the
first of a series: the append with which it starts its work asks for the next one.
"""

import re
from contextlib import suppress
from datetime import UTC, datetime, time, timedelta
from functools import partial
from operator import is_, not_
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from pydantic import AwareDatetime, Field

from cueline.events.number import Seconds
from cueline.events.part import Part

_IN_SERIES = re.compile(r"(.+)\.\d{8}t\d{6}z")


class Schedule(Part):
    """The time at which a session starts its work."""

    at: AwareDatetime
    every_seconds: Seconds | None = Field(default=None, ge=1, exclude_if=partial(is_, None))
    """Time between the starts of its series; None: it starts once."""
    zone: str = Field(default="", exclude_if=not_)
    """Of a series in days by the wall clock: the zone's name; empty: the interval is kept."""
    clock: time | None = Field(default=None, exclude_if=partial(is_, None))
    """The wall time of such a series."""
    skipped: str = Field(default="", exclude_if=not_)
    """The local time that was asked for, if the clocks skip it; `at` is as much later."""
    first: str = Field(default="", exclude_if=not_)
    """The first session of its series; empty: itself."""


def time_after(schedule: Schedule, now: datetime) -> datetime | None:
    """Return the next time of the series that is not over: times that were missed are left out."""
    if schedule.every_seconds is None:
        return None
    every = timedelta(seconds=schedule.every_seconds)
    if schedule.clock is not None:
        with suppress(ZoneInfoNotFoundError):  # a machine that has no zones keeps the interval
            zone = ZoneInfo(schedule.zone)
            return _wall_time_after(schedule.at, now, zone=zone, clock=schedule.clock, every=every)
    return schedule.at + max(1, (now - schedule.at) // every + 1) * every


def _wall_time_after(
    at: datetime, now: datetime, *, zone: ZoneInfo, clock: time, every: timedelta
) -> datetime:
    """Return the first time after *at* and *now* at which it is *clock*, each so many days."""
    wall = datetime.combine(at.astimezone(zone), clock)
    passed = max(now.astimezone(zone).replace(tzinfo=None) - wall, timedelta()) // every
    times = (instant(wall + (passed + more) * every, zone) for more in range(3))
    return next(each for each in times if each > max(at, now))


def instant(wall: datetime, zone: ZoneInfo) -> datetime:
    """Return when it is *wall* in *zone*: the first of two; as much later if the clocks skip it."""
    return wall.replace(tzinfo=zone).astimezone(UTC)


def stream_at(first: str, at: datetime) -> str:
    """Return the stream of the session of a series that starts at that time."""
    return f"{first}.{at.astimezone(UTC):%Y%m%dt%H%M%Sz}"


def first_of(stream: str) -> str | None:
    """Return the session whose series *stream* may belong to, by its name."""
    found = _IN_SERIES.fullmatch(stream)
    return found[1] if found else None
