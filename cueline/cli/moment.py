"""A moment as a user types it: a date, a time, or how long ago."""

import re
from datetime import UTC, datetime, timedelta

import typer

_AGE = re.compile(r"(\d{1,6})([mhdw])")
_UNITS = {"m": "minutes", "h": "hours", "d": "days", "w": "weeks"}


def moment(option: str, text: str | None) -> datetime | None:
    """Return the moment that the *text* of an option names; None where it was left out.

    Raises:
        BadParameter: name another; the message shows some.
    """
    if text is None:
        return None
    try:
        if (age := _AGE.fullmatch(text)) is not None:
            return datetime.now(UTC) - timedelta(**{_UNITS[age[2]]: int(age[1])})
        return datetime.fromisoformat(text).astimezone()
    except (ValueError, OverflowError):
        like = "2026-01-31 or 2026-01-31T12:00:00, and no age like 30d"
        raise typer.BadParameter(f"{text!r} is no time like {like}", param_hint=option) from None
