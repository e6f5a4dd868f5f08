"""When an effect is tried again (000-065, 003-070, 004-010, 004-012, 004-068)."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cueline.deciders.retry import LONGEST_WAIT_SECONDS, delay_seconds, retry_at
from cueline.events.agent_parts import RETRY_PRESETS, RetryPolicy
from cueline.events.fact import LONGEST_SECONDS
from tests.session_example import NOW, later

PLAIN = RetryPolicy(base_seconds=1, factor=2, cap_seconds=60, jitter=0)


def test_each_retry_waits_longer_up_to_the_cap():
    assert [1, 2, 4, 8, 16, 32, 60, 60] == [delay_seconds(PLAIN, "k", n) for n in range(1, 9)]


def test_the_spread_is_the_same_whenever_it_is_asked():
    policy = RetryPolicy(jitter=0.25)

    assert delay_seconds(policy, "k", 1) == delay_seconds(policy, "k", 1)
    assert delay_seconds(policy, "k", 1) != delay_seconds(policy, "another", 1)


# I10: what was recorded is decided again as it was.
def test_the_spread_is_what_it_always_was():
    policy = RetryPolicy(jitter=0.25)

    spread = [round(delay_seconds(policy, "session-default/1/1.m", n), 6) for n in (1, 2, 3)]

    assert [1.244586, 2.461727, 3.825746] == spread


def test_after_the_last_retry_it_is_enough():
    policy = RetryPolicy(max_retries=2)

    assert retry_at(policy, key="k", failures=2, failed_at=NOW) is not None
    assert retry_at(policy, key="k", failures=3, failed_at=NOW) is None


# 004-047, C2: who says nothing has this.
def test_the_default_is_three_retries_from_one_second_up_to_a_minute():
    policy = RetryPolicy()

    assert (3, 1, 2, 60, 0.25, None) == (
        policy.max_retries,
        policy.base_seconds,
        policy.factor,
        policy.cap_seconds,
        policy.jitter,
        policy.deadline_seconds,
    )


# C2: always counted in retries; three attempts are two of them.
@pytest.mark.parametrize(
    ("preset", "delays"), [("standard", [1, 2, 4]), ("exact", [2, 4, 8]), ("short", [1, 2])]
)
def test_a_preset_has_the_schedule_it_is_named_for(preset, delays):
    policy = RetryPolicy.named(preset).model_copy(update={"jitter": 0})

    assert delays == [delay_seconds(policy, "k", n + 1) for n in range(policy.max_retries)]


def test_an_unknown_preset_is_refused_with_the_known_ones():
    with pytest.raises(ValueError, match=", ".join(RETRY_PRESETS)):
        RetryPolicy.named("heroic")


# 004-013: the spread is in what is recorded, not drawn again.
@given(st.integers(1, 20), st.text())
def test_the_spread_stays_within_its_share(retry, key):
    policy = RetryPolicy(jitter=0.25, max_retries=20)
    plain = delay_seconds(policy.model_copy(update={"jitter": 0}), key, retry)

    assert 0.75 * plain <= delay_seconds(policy, key, retry) <= 1.25 * plain


# 004-082: a total deadline.
def test_no_retry_begins_after_the_deadline():
    policy = PLAIN.model_copy(update={"deadline_seconds": 10.0})

    on_time = retry_at(policy, key="k", failures=2, failed_at=later(8), since=NOW)
    too_late = retry_at(policy, key="k", failures=2, failed_at=later(8.1), since=NOW)

    assert (later(10), None) == (on_time, too_late)


def test_a_retry_after_beyond_the_deadline_ends_the_retries():
    policy = PLAIN.model_copy(update={"deadline_seconds": 10.0})

    assert retry_at(policy, key="k", failures=1, failed_at=NOW, retry_after=11) is None


# 003-069: never before it was asked for.
def test_what_a_provider_asks_for_is_waited_out():
    assert later(7) == retry_at(PLAIN, key="k", failures=1, failed_at=NOW, retry_after=7)


@pytest.mark.parametrize("asked", [1e12, math.inf])
def test_no_provider_can_ask_for_more_than_a_day(asked):
    again = retry_at(PLAIN, key="k", failures=1, failed_at=NOW, retry_after=asked)

    assert later(LONGEST_WAIT_SECONDS) == again


def test_a_provider_that_asks_for_nonsense_is_not_heard():
    assert later(1) == retry_at(PLAIN, key="k", failures=1, failed_at=NOW, retry_after=math.nan)


@given(
    st.floats(0, LONGEST_SECONDS),
    st.floats(1, allow_nan=False, allow_infinity=False),
    st.floats(0, LONGEST_SECONDS),
    st.integers(1, 20),
)
def test_every_policy_gives_a_time(base, factor, cap, failures):
    policy = RetryPolicy(base_seconds=base, factor=factor, cap_seconds=cap, max_retries=20)

    assert retry_at(policy, key="k", failures=failures, failed_at=NOW) >= NOW
