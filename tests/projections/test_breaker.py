"""Which models and tools are left alone."""

from datetime import timedelta

import pytest

from cueline.events.breaker import (
    BreakerClosed,
    BreakerHalfOpened,
    BreakerHeld,
    BreakerOpened,
    FailureCounted,
)
from cueline.projections.breaker import list_breakers
from tests.projections.conftest import NOW

STREAM = "breaker-default/anthropic.3f9a01c2.claude-opus-4-6"


def later(seconds):
    return NOW + timedelta(seconds=seconds)


COUNTED = FailureCounted(at=NOW, kind="timeout")
OPENED = BreakerOpened(at=NOW, until=later(60), kind="overloaded", openings=2)
HELD = BreakerHeld(at=NOW, until=later(30), kind="rate_limited")
HALF_OPEN = BreakerHalfOpened(at=later(60), probe="a/1.m", until=later(180))


@pytest.mark.parametrize(
    ("facts", "told"),
    [
        ([COUNTED, COUNTED], ("closed", None, "timeout", 2)),
        ([COUNTED, OPENED], ("open", later(60), "overloaded", 1)),
        (
            [COUNTED, OPENED, BreakerHeld(at=NOW, until=later(90), kind="rate_limited")],
            ("open", later(90), "rate_limited", 1),
        ),
        ([HELD], ("held", later(30), "rate_limited", 0)),
        ([OPENED, HALF_OPEN], ("half-open", later(180), "overloaded", 0)),
        ([COUNTED, OPENED, HALF_OPEN, BreakerClosed(at=NOW)], ("closed", None, "overloaded", 0)),
    ],
)
async def test_a_breaker_is_told_as_it_stands(log, facts, told):
    await log.append(STREAM, *facts)

    (breaker,) = list_breakers(await log.caught_up(), later(1))

    assert told == (breaker.state, breaker.until, breaker.kind, breaker.failures)
    assert "anthropic.3f9a01c2.claude-opus-4-6" == breaker.id


@pytest.mark.parametrize(
    ("facts", "told"),
    [
        ([COUNTED, FailureCounted(at=later(5), kind="timeout")], (later(0), 0, "")),
        ([OPENED], (later(0), 2, "")),
        ([OPENED, HALF_OPEN], (later(60), 2, "a/1.m")),
        ([OPENED, HALF_OPEN, OPENED], (later(0), 2, "")),
        ([OPENED, HALF_OPEN, BreakerClosed(at=later(70))], (later(70), 0, "")),
    ],
)
async def test_a_breaker_tells_since_when_how_often_and_by_whom_it_is_tried(log, facts, told):
    await log.append(STREAM, *facts)

    (breaker,) = list_breakers(await log.caught_up(), NOW)

    assert told == (breaker.since, breaker.openings, breaker.probe or "")


async def test_a_hold_that_is_over_is_none(log):
    await log.append(STREAM, HELD)

    (breaker,) = list_breakers(await log.caught_up(), later(30))

    assert ("closed", None) == (breaker.state, breaker.until)


async def test_what_is_left_alone_is_listed_first(log):
    await log.append("breaker-default/b", OPENED)
    await log.append("breaker-default/a", COUNTED)

    assert ["b", "a"] == [each.id for each in list_breakers(await log.caught_up(), NOW)]
