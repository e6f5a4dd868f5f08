"""Retries for functions of one's own (004-011, 004-050)."""

import asyncio
from datetime import timedelta

import pytest

from cueline.agents.backoff import retry_with_backoff
from cueline.errors import ProviderRefusedError, ProviderUnavailableError, ToolFailedError
from cueline.events.agent_parts import RetryPolicy
from cueline.testing.clock import FakeClock

PLAIN = RetryPolicy(jitter=0)
BUSY = ToolFailedError("overloaded", "try later")


class Flaky:
    """Does what it is told to, one thing after the other."""

    def __init__(self, *answers):
        self.clock = FakeClock()
        self.began = self.clock.now()
        self.calls = []
        self._answers = [*answers]

    async def __call__(self):
        self.calls.append((self.clock.now() - self.began).total_seconds())
        answer = self._answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer

    async def tried(self, policy=PLAIN, **options):
        trying = asyncio.create_task(retry_with_backoff(self, policy, clock=self.clock, **options))
        await self.clock.advance(3600)
        return await trying


async def test_what_passes_is_tried_again_on_the_schedule():
    flaky = Flaky(BUSY, BUSY, BUSY, "done")

    assert "done" == await flaky.tried()

    assert [0, 1, 3, 7] == flaky.calls


async def test_after_the_last_retry_the_failure_is_raised():
    flaky = Flaky(BUSY, BUSY, BUSY)

    with pytest.raises(ToolFailedError, match="overloaded"):
        await flaky.tried(PLAIN.model_copy(update={"max_retries": 2}))


# D37: not every exception is worth another attempt.
@pytest.mark.parametrize(
    "lasting",
    [ValueError("timeout"), ToolFailedError("tool_error", ""), ProviderRefusedError("auth", "")],
)
async def test_what_lasts_is_raised_at_once(lasting):
    flaky = Flaky(lasting)

    with pytest.raises(type(lasting)):
        await flaky.tried()

    assert 1 == len(flaky.calls)


async def test_ones_own_exceptions_pass_when_they_are_named():
    assert "done" == await Flaky(ConnectionError(), "done").tried(transient=(OSError,))


async def test_what_was_asked_for_is_waited_out():
    flaky = Flaky(ProviderUnavailableError("rate_limited", "", 30.0), "done")

    await flaky.tried()

    assert [0, 30] == flaky.calls


# 004-082: from the first failure on.
async def test_no_attempt_begins_after_the_deadline():
    flaky = Flaky(BUSY, BUSY, BUSY)

    with pytest.raises(ToolFailedError, match="overloaded"):
        await flaky.tried(PLAIN.model_copy(update={"deadline_seconds": 2.5}))

    assert [0, 1] == flaky.calls


async def test_what_passes_besides_may_be_a_list():
    flaky = Flaky(TimeoutError(), "done")

    assert "done" == await flaky.tried(transient=[OSError, TimeoutError])


class Throttled(Exception):  # noqa: N818 - as other people's library has it
    retry_after = timedelta(seconds=5)


async def test_what_others_say_of_the_time_to_wait_hides_no_failure():
    flaky = Flaky(Throttled("too fast"), "done")

    assert "done" == await flaky.tried(transient=(Throttled,))
    assert [0, 1] == flaky.calls
