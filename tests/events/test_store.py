"""How the log counts time: what is recorded is read by every later version."""

from datetime import UTC, datetime, timedelta, timezone

import pytest

from cueline.events.store import from_us, to_us


@pytest.mark.parametrize(
    ("moment", "microseconds"),
    [
        (datetime(1970, 1, 1, tzinfo=UTC), 0),
        (datetime(2026, 1, 2, 3, 4, 5, 678901, tzinfo=UTC), 1_767_323_045_678_901),
        (datetime(1969, 12, 31, 23, 59, 59, tzinfo=UTC), -1_000_000),
    ],
)
def test_a_moment_is_recorded_as_microseconds_since_1970(moment, microseconds):
    assert (microseconds, moment) == (to_us(moment), from_us(microseconds))


def test_a_moment_is_the_same_wherever_it_was():
    here = datetime(2026, 1, 2, 5, tzinfo=timezone(timedelta(hours=2)))

    assert datetime(2026, 1, 2, 3, tzinfo=UTC) == from_us(to_us(here))
