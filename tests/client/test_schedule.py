"""When a session starts, in the words of a person or a program."""

import time
from datetime import UTC, datetime, timedelta, timezone

import pytest

from cueline.client.schedule import schedule_of
from cueline.errors import ConfigError, InvalidNameError
from cueline.events.schedule import Schedule

NOW = datetime(2026, 5, 4, 10, 30, tzinfo=UTC)
FIRST = "session-default/nightly"


@pytest.fixture(autouse=True)
def _berlin(monkeypatch):
    """Live two hours east of Greenwich, in summer."""
    monkeypatch.setenv("TZ", "Europe/Berlin")
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


def asked(at=None, every=None, now=NOW, first=FIRST):
    return schedule_of(at, every, now, first)


def test_without_a_time_a_session_starts_at_once():
    assert asked() is None


@pytest.mark.parametrize(
    ("at", "utc"),
    [
        ("+10m", "2026-05-04T10:40"),
        ("+ 1.5h", "2026-05-04T12:00"),
        ("12:45", "2026-05-04T10:45"),
        ("7:30", "2026-05-05T05:30"),
        ("12:30", "2026-05-05T10:30"),
        ("2026-05-04T12:45", "2026-05-04T10:45"),
        ("2026-05-04 12:45:10Z", "2026-05-04T12:45:10"),
        ("2026-05-04T12:45+02:00", "2026-05-04T10:45"),
        ("2026-05-05", "2026-05-04T22:00"),
        (datetime(2026, 5, 4, 12, 45), "2026-05-04T10:45"),  # noqa: DTZ001 - of this machine
        (datetime(2026, 5, 4, 12, 45, tzinfo=timezone(timedelta(hours=1))), "2026-05-04T11:45"),
    ],
)
def test_a_time_is_read(at, utc):
    assert Schedule(at=datetime.fromisoformat(utc).replace(tzinfo=UTC)) == asked(at)


def test_a_time_of_day_is_that_of_the_clock_on_the_day_on_which_the_clocks_change():
    eve = datetime(2026, 10, 24, 20, tzinfo=UTC)

    assert datetime(2026, 10, 25, 6, 30, tzinfo=UTC) == asked("7:30", now=eve).at


@pytest.mark.parametrize("every", ["1h", 3600, timedelta(hours=1)])
def test_a_series_begins_now_or_at_its_time(every):
    assert Schedule(at=NOW, every_seconds=3600) == asked(every=every)

    assert NOW + timedelta(minutes=10) == asked("+10m", every).at


def test_a_series_that_began_in_the_past_goes_on_at_its_next_time():
    assert datetime(2026, 5, 5, 5, 30, tzinfo=UTC) == asked("2026-05-01T07:30", "1d").at


@pytest.mark.parametrize(
    ("at", "every", "said"),
    [
        ("25:00", None, "at: '25:00' is no time of the next ten years; like 07:30, 2026-05-04T"),
        ("soon", None, "at: 'soon' is no time"),
        ("+soon", None, "at: '+soon' is no time"),
        ("+99999d", None, "at: '+99999d' is no time"),
        ("9999-12-31T23:59", "1h", "at: '9999-12-31T23:59' is no time"),
        (7, None, "at: 7 is no time"),
        ("2026-05-04T12:00", None, "at: '2026-05-04T12:00' has passed; leave it out to start at"),
        (None, "often", "every: 'often' is no time; a time is a number of seconds, or"),
        (None, "0.5s", "every: '0.5s' is less than 1"),
        (None, 0, "every: 0 is less than 1"),
    ],
)
def test_an_error_names_the_value_and_what_to_say_instead(at, every, said):
    with pytest.raises(ConfigError) as raised:
        asked(at, every)

    assert str(raised.value).startswith(said)


def test_the_name_of_a_series_leaves_room_for_those_of_the_next_ones():
    with pytest.raises(InvalidNameError, match="at most 128"):
        asked(every="1h", first=f"session-default/{'a' * 120}")
