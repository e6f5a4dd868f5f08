"""When a session starts, as a person or a program says it."""

import re
from datetime import UTC, datetime, time, timedelta

from pydantic import TypeAdapter, ValidationError

from cueline.client.value import make_value
from cueline.errors import ConfigError
from cueline.events.number import LONGEST_SECONDS, Seconds
from cueline.events.schedule import Schedule, stream_at, time_after
from cueline.events.stream import id_of, stream_name

At = datetime | str
"""A time, of this machine's zone if it has none; or `07:30`, `2026-05-04T07:30`, `+10m`."""
Every = timedelta | float | str
"""Seconds, or as `90s`, `15m`, `4h` or `7d`."""
_CLOCK = re.compile(r"\d{1,2}:\d{2}")
_SECONDS: TypeAdapter[float] = TypeAdapter(Seconds)


def schedule_of(at: At | None, every: Every | None, now: datetime, first: str) -> Schedule | None:
    """Return the schedule of the session *first*; None if it starts at once.

    A series may begin in the past: then it starts at its next time.

    Raises:
        ConfigError: there is no such time, or it has passed.
        InvalidNameError: the id is too long for those that follow in its series.
    """
    if at is None and every is None:
        return None
    if isinstance(every, timedelta):
        every = every.total_seconds()
    moment = now if at is None else _moment(at, now)
    try:
        schedule = make_value(Schedule, at=moment, every_seconds=every)
    except ConfigError as error:
        raise ConfigError("every", error.reason) from error
    if moment < now and (following := time_after(schedule, now)) is not None:
        schedule = schedule.model_copy(update={"at": following})
    if schedule.at < now:
        raise ConfigError("at", f"{_told(at)} has passed; leave it out to start at once")
    if every is not None:
        stream_name("session", id_of(stream_at(first, schedule.at)))
    return schedule


def _moment(at: At, now: datetime) -> datetime:
    try:
        found = _read(at, now)
        if found - now <= timedelta(seconds=LONGEST_SECONDS):
            return found
    except (ValueError, OverflowError, AttributeError, ValidationError):
        pass
    reason = f"{_told(at)} is no time of the next ten years; like 07:30, 2026-05-04T07:30 or +10m"
    raise ConfigError("at", reason) from None


def _read(at: At, now: datetime) -> datetime:
    """Return the time in UTC; a time of day is the next one, on this machine's clock."""
    if isinstance(at, datetime):
        return at.astimezone(UTC)
    if at.startswith("+"):
        return now + timedelta(seconds=_SECONDS.validate_python(at[1:]))
    if not _CLOCK.fullmatch(at):
        return datetime.fromisoformat(at).astimezone(UTC)
    today = datetime.combine(now.astimezone(), time.fromisoformat(at.zfill(5)))
    # Both without a zone: a day has 23 or 25 hours when the clocks change.
    days = (today + timedelta(days=each) for each in range(2))
    return next(day for each in days if (day := each.astimezone(UTC)) > now)


def _told(at: At | None) -> str:
    return repr(at) if isinstance(at, str) else str(at)
