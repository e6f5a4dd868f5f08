"""When a session starts, in the words of a person or a program."""

import datetime as dt
import time
from datetime import UTC, datetime, timedelta, timezone

import pytest

from cueline.client.schedule import schedule_of
from cueline.errors import ConfigError, InvalidNameError
from cueline.events.start import Schedule, time_after

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


# The clocks of Berlin are put forward at 2:00 on 28 March 2027, and back at 3:00 on 31 October.
SPRING = datetime(2027, 3, 27, 12, tzinfo=UTC)
AUTUMN = datetime(2027, 10, 30, 12, tzinfo=UTC)


def starts(at, every, now, times=3):
    """Return when the sessions of a series start, in UTC."""
    schedule = asked(at, every, now)
    found = [schedule.at]
    while len(found) < times:
        found.append(time_after(schedule.model_copy(update={"at": found[-1]}), found[-1]))
    return [f"{each.astimezone(UTC):%d %H:%M}" for each in found]


@pytest.mark.parametrize("at", ["2027-03-28T02:30", "02:30", datetime(2027, 3, 28, 2, 30)])  # noqa: DTZ001 - of this machine
def test_a_time_that_the_clocks_skip_is_as_much_later_and_named(at):
    found = asked(at, now=SPRING)

    assert datetime(2027, 3, 28, 1, 30, tzinfo=UTC) == found.at
    assert "2027-03-28 02:30:00" == found.skipped


def test_of_a_time_that_comes_twice_the_first_counts():
    assert datetime(2027, 10, 31, 0, 30, tzinfo=UTC) == asked("02:30", now=AUTUMN).at


@pytest.mark.parametrize(
    ("at", "every", "now", "utc"),
    [
        ("07:30", "1d", SPRING, ["28 05:30", "29 05:30", "30 05:30"]),
        ("2027-03-27T20:00", "1d", SPRING, ["27 19:00", "28 18:00", "29 18:00"]),
        ("2027-03-27T20:00", "2d", SPRING, ["27 19:00", "29 18:00", "31 18:00"]),
        ("2027-03-27T20:00", "24h", SPRING, ["27 19:00", "28 19:00", "29 19:00"]),
        ("2027-03-27T20:00", 86_400, SPRING, ["27 19:00", "28 19:00", "29 19:00"]),
        ("2027-03-27T20:00+01:00", "1d", SPRING, ["27 19:00", "28 18:00", "29 18:00"]),
        ("02:30", "1d", SPRING, ["28 01:30", "29 00:30", "30 00:30"]),
        ("2027-10-30T20:00", "1d", AUTUMN, ["30 18:00", "31 19:00", "01 19:00"]),
        ("2027-10-30T20:00", "24h", AUTUMN, ["30 18:00", "31 18:00", "01 18:00"]),
        ("02:30", "1d", AUTUMN, ["31 00:30", "01 01:30", "02 01:30"]),
        (None, "1d", AUTUMN, ["30 12:00", "31 13:00", "01 13:00"]),
    ],
)
def test_days_keep_the_wall_clock_and_hours_the_interval(at, every, now, utc):
    assert utc == starts(at, every, now)


def test_days_that_were_missed_are_left_out_by_the_wall_clock():
    schedule = asked("2027-03-27T20:00", "1d", SPRING)

    assert datetime(2027, 3, 30, 18, tzinfo=UTC) == time_after(
        schedule, datetime(2027, 3, 29, 18, tzinfo=UTC)
    )
    assert datetime(2027, 3, 28, 18, tzinfo=UTC) == time_after(schedule, NOW)


def test_a_machine_without_that_zone_keeps_the_interval():
    schedule = Schedule(at=NOW, every_seconds=86_400, zone="Nowhere/Land", clock=dt.time(12, 30))

    assert NOW + timedelta(days=1) == time_after(schedule, NOW)


@pytest.mark.parametrize("zone", ["CET-1CEST,M3.5.0,M10.5.0/3", "/nowhere", ""])
def test_a_zone_whose_name_is_not_known_is_used_by_its_clock(monkeypatch, zone):
    monkeypatch.setenv("TZ", zone)
    time.tzset()
    day = asked("07:30", "1d", SPRING)

    assert day.at > SPRING
    assert dt.date(2027, 3, 28) == day.at.date()


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
