"""When an effect is tried again."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cueline.deciders.retry import LONGEST_SECONDS, delay_seconds, retry_at
from cueline.events.agent import RetryPolicy
from cueline.testing.session_example import NOW, later

PLAIN = RetryPolicy(base_seconds=1, factor=2, cap_seconds=60, jitter=0)


def test_each_retry_waits_longer_up_to_the_cap():
    assert [1, 2, 4, 8, 16, 32, 60, 60] == [delay_seconds(PLAIN, "k", n) for n in range(1, 9)]


def test_the_spread_is_the_same_whenever_it_is_asked():
    policy = RetryPolicy(jitter=0.25)

    assert delay_seconds(policy, "k", 1) == delay_seconds(policy, "k", 1)
    assert delay_seconds(policy, "k", 1) != delay_seconds(policy, "another", 1)


def test_after_the_last_retry_it_is_enough():
    policy = RetryPolicy(max_retries=2)

    assert retry_at(policy, key="k", failures=2, failed_at=NOW) is not None
    assert retry_at(policy, key="k", failures=3, failed_at=NOW) is None


@pytest.mark.parametrize("asked", [1e12, math.inf])
def test_no_provider_can_ask_for_more_than_a_day(asked):
    again = retry_at(PLAIN, key="k", failures=1, failed_at=NOW, retry_after=asked)

    assert later(LONGEST_SECONDS) == again


def test_a_provider_that_asks_for_nonsense_is_not_heard():
    assert later(1) == retry_at(PLAIN, key="k", failures=1, failed_at=NOW, retry_after=math.nan)


@given(
    st.floats(0, allow_nan=False),
    st.floats(1, allow_nan=False),
    st.floats(0, allow_nan=False),
    st.integers(1, 20),
)
def test_every_policy_gives_a_time(base, factor, cap, failures):
    policy = RetryPolicy(base_seconds=base, factor=factor, cap_seconds=cap, max_retries=20)

    assert retry_at(policy, key="k", failures=failures, failed_at=NOW) >= NOW
