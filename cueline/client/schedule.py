"""Reads the start time and the interval of a session."""

import re
from datetime import UTC, datetime, time, timedelta
from pathlib import Path
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from pydantic import TypeAdapter, ValidationError

from cueline.client.argument_check import make_value
from cueline.config.environment import HERE
from cueline.errors import ConfigError
from cueline.events.fact import LONGEST_SECONDS, Seconds
from cueline.events.start import Schedule, instant, stream_at, time_after
from cueline.events.stream import id_of, stream_name

At = datetime | str
"""A time, in this machine's zone if it has none; or `07:30`, `2026-05-04T07:30`, `+10m`."""
Every = timedelta | float | str
"""Seconds, or a text such as `90s`, `15m`, `4h`; or `7d`, days by the wall clock."""
_DAYS = re.compile(r"\d+ ?d")
_LOCAL = Path("/etc/localtime")
_CLOCK = re.compile(r"\d{1,2}:\d{2}")
_SECONDS: TypeAdapter[float] = TypeAdapter(Seconds)


def schedule_of(at: At | None, every: Every | None, now: datetime, first: str) -> Schedule | None:
    """Return the schedule of the session *first*; None if it starts at once.

    A series may begin in the past: it then starts at its next time.

    Raises:
        ConfigError: the time does not exist, or has passed.
        InvalidNameError: the id is too long for later sessions of the series.
    """
    if at is None and every is None:
        return None
    zone = local_zone()
    found = now if at is None else _moment(at, now, zone)
    moment = found if found.tzinfo else _instant(found, zone)
    local = moment.astimezone(zone).replace(tzinfo=None)
    wall = local if found.tzinfo else found
    told: dict[str, object] = {"at": moment, "every_seconds": every}
    if isinstance(every, timedelta):
        told["every_seconds"] = every.total_seconds()
    elif isinstance(every, str) and _DAYS.fullmatch(every.strip()) and zone is not None:
        told |= {"zone": zone.key, "clock": wall.time()}
    if wall != local:
        told["skipped"] = wall.isoformat(" ")
    try:
        schedule = make_value(Schedule, **told)
    except ConfigError as error:
        raise ConfigError("every", error.reason) from error
    if moment < now and (following := time_after(schedule, now)) is not None:
        schedule = schedule.model_copy(update={"at": following, "skipped": ""})
    if schedule.at < now:
        raise ConfigError("at", f"{_told(at)} has passed; leave it out to start at once")
    if every is not None:
        stream_name("session", id_of(stream_at(first, schedule.at)))
    return schedule


def local_zone() -> ZoneInfo | None:
    """Return the zone of this machine; None if its name is unknown."""
    place = HERE.get("TZ", "").removeprefix(":") or str(_LOCAL.resolve())
    try:
        return ZoneInfo(place.rpartition("zoneinfo/")[2])
    except (ZoneInfoNotFoundError, ValueError, OSError):
        return None


def _moment(at: At, now: datetime, zone: ZoneInfo | None) -> datetime:
    """Return the time *at* in UTC, or without a zone if *at* is a time of this machine's clock."""
    try:
        found = _read(at, now, zone)
        moment = found if found.tzinfo else _instant(found, zone)
        if moment - now <= timedelta(seconds=LONGEST_SECONDS):
            return found
    except (ValueError, OverflowError, TypeError, ValidationError):
        pass
    reason = f"{_told(at)} is no time of the next ten years; like 07:30, 2026-05-04T07:30 or +10m"
    raise ConfigError("at", reason) from None


def _read(at: At, now: datetime, zone: ZoneInfo | None) -> datetime:
    """Return the result of `_moment` without its checks; a time of day means the next such time."""
    if isinstance(at, str) and at.startswith("+"):
        return now + timedelta(seconds=_SECONDS.validate_python(at[1:]))
    if not isinstance(at, str) or not _CLOCK.fullmatch(at):
        found = at if isinstance(at, datetime) else datetime.fromisoformat(at)
        return found.astimezone(UTC) if found.tzinfo else found
    today = datetime.combine(now.astimezone(zone), time.fromisoformat(at.zfill(5)))
    # Both times have no zone: a day has 23 or 25 hours when the clocks change.
    return today if _instant(today, zone) > now else today + timedelta(days=1)


def _instant(wall: datetime, zone: ZoneInfo | None) -> datetime:
    return wall.astimezone(UTC) if zone is None else instant(wall, zone)


def _told(at: At | None) -> str:
    return repr(at) if isinstance(at, str) else str(at)
