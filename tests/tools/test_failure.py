"""What a tool says of its failure: whether it passes, and when (004-015)."""

import math

import pytest

from cueline.errors import ConfigError
from cueline.events.agent_parts import RetryPolicy
from cueline.tools.tool import tool

RESET = "ConnectionResetError: by peer"
PLAIN = "ValueError: network error: timeout"
TOLD = {"coffee": "unavailable", "reset": "network", "slow": "timeout"}
pytestmark = pytest.mark.asyncio(loop_scope="module")


async def test_a_tool_says_when_to_come_back(warm_executor, order, failure):
    failed = await failure(warm_executor.call(order("failing:rate_limited", seconds=2.5)))

    assert ("rate_limited", 2.5) == (failed.kind, failed.retry_after)


@pytest.mark.parametrize("asked", [-1.0, math.inf, math.nan])
async def test_a_time_that_is_none_is_not_waited_for(warm_executor, order, failure, asked):
    failed = await failure(warm_executor.call(order("failing:rate_limited_in_loop", seconds=asked)))

    assert ("rate_limited", None) == (failed.kind, failed.retry_after)


@pytest.mark.parametrize("raised", TOLD)
@pytest.mark.parametrize("name", ["fetch", "fetch_in_loop", "fetch_one_by_one"])
async def test_an_exception_declared_as_transient_passes(
    warm_executor, order, failure, name, raised
):
    failed = await failure(warm_executor.call(order(f"failing:{name}", kind=raised)))

    assert TOLD[raised] == failed.kind


# D9: by its type, whatever its message sounds like.
@pytest.mark.parametrize("name", ["fetch", "fetch_in_loop", "fetch_one_by_one"])
async def test_a_plain_exception_is_permanent(warm_executor, order, failure, name):
    failed = await failure(warm_executor.call(order(f"failing:{name}", kind="plain")))

    assert "tool_error: ValueError: network error: timeout" == str(failed)


# A task group raises a group, whose own message says nothing of what went wrong.
IN_GROUPS = {
    "group": ("network", ["of one (1 sub-exception)", RESET]),
    "resets": ("network", ["of two (2 sub-exceptions)", RESET, "CoffeeMachineError: no beans"]),
    "mixed": ("tool_error", ["of two (2 sub-exceptions)", RESET, PLAIN]),
}


@pytest.mark.parametrize("raised", IN_GROUPS)
@pytest.mark.parametrize("name", ["fetch", "fetch_in_loop"])
async def test_a_group_of_exceptions_is_what_is_in_it(warm_executor, order, failure, name, raised):
    failed = await failure(warm_executor.call(order(f"failing:{name}", kind=raised)))

    told = failed.message.removeprefix("ExceptionGroup: ").split("\n")
    assert IN_GROUPS[raised] == (failed.kind, told)


@pytest.mark.parametrize("name", ["fetch", "fetch_in_loop"])
async def test_what_a_tool_says_counts_in_a_group_too(warm_executor, order, failure, name):
    failed = await failure(warm_executor.call(order(f"failing:{name}", kind="said")))

    assert ("rate_limited", "come back later", 7) == (
        failed.kind,
        failed.message,
        failed.retry_after,
    )


# What a tool says of its failure goes before what is said of its exceptions.
@pytest.mark.parametrize("name", ["know_better", "know_better_in_loop"])
async def test_a_kind_that_is_said_is_the_kind(warm_executor, order, failure, name):
    failed = await failure(warm_executor.call(order(f"failing:{name}", kind="rate_limited")))

    assert ("rate_limited", 7) == (failed.kind, failed.retry_after)


@pytest.mark.parametrize("name", ["know_better", "know_better_in_loop"])
async def test_arguments_that_do_not_fit_never_pass(warm_executor, order, failure, name):
    failed = await failure(warm_executor.call(order(f"failing:{name}", kind=3)))

    assert "invalid_arguments" == failed.kind


# I5: else it would be run again, or be in doubt, on the tool's own word.
@pytest.mark.parametrize("kind", ["lost", "not_started", "cancelled", "whatever"])
async def test_a_tool_cannot_say_what_became_of_its_call(warm_executor, order, failure, kind):
    failed = await failure(warm_executor.call(order("failing:claim", kind=kind)))

    assert ("tool_error", None) == (failed.kind, failed.retry_after)


async def test_a_tool_may_have_a_retry_policy_of_its_own():
    look = tool(read_only=True, retry="exact")(example)

    assert RetryPolicy.named("exact") == look.retry


async def test_a_preset_that_nobody_knows_is_refused():
    with pytest.raises(ConfigError, match="retry is 'heroic'; presets are standard"):
        tool(retry="heroic")(example)


async def test_only_exceptions_are_transient():
    with pytest.raises(ConfigError, match="'timeout', which is no exception"):
        tool(transient=("timeout",))(example)


async def test_the_exceptions_that_pass_may_be_a_list():
    assert (OSError, ValueError) == tool(transient=[OSError, ValueError])(example).transient


async def test_one_exception_will_do_instead_of_several():
    assert (TimeoutError,) == tool(transient=TimeoutError)(example).transient


def example() -> str:
    """Do nothing."""
    return ""
