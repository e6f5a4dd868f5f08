"""How a call ends that brings no answer, and one that is not the tool's."""

import asyncio

import pytest
from msgspec.structs import replace

from cueline.testing.wait import await_until
from cueline.tools.executor import killed_failure

RAISED = {
    "panic": "PanicError: at the disco",
    "mute": "MuteError",
    "group": "BaseExceptionGroup: several (1 sub-exception)\nPanicError: at the disco",
}


@pytest.mark.parametrize(
    ("name", "how"),
    [
        ("leave", "ended its process, with exit status 3"),
        ("stop_existing", "was killed by SIGKILL, perhaps because memory ran out"),
        ("crash", "was killed by SIGSEGV"),
    ],
)
async def test_a_tool_that_ends_its_process_is_told(executor, order, name, how, failure):
    failed = await failure(executor.call(order(f"misbehaving:{name}")))

    assert f"killed: {name} {how}; it may have had effects" == str(failed)


@pytest.mark.parametrize("how", ["exits", "returns"])
async def test_a_fork_of_the_worker_does_not_answer_for_the_tool(executor, order, how):
    answers = [await executor.call(order("misbehaving:exit_a_fork", how=how)) for _ in range(2)]

    assert [b"said by the tool"] * 2 == [answer.content for answer in answers]


# I5: what nobody reports would count as never begun, and be run again.
@pytest.mark.parametrize("name", ["panic", "panic_in_loop"])
@pytest.mark.parametrize("how", RAISED)
async def test_whatever_a_tool_raises_is_its_failure(executor, order, failure, name, how):
    failed = await failure(executor.call(order(f"misbehaving:{name}", how=how)))

    assert f"tool_error: {RAISED[how]}" == str(failed)


async def test_a_cancellation_inside_a_worker_is_a_failure(executor, order, failure):
    failed = await failure(executor.call(order("misbehaving:cancel_elsewhere")))

    assert "tool_error: CancelledError" == str(failed)


@pytest.mark.parametrize(("code", "how"), [(-9, "SIGKILL"), (-35, "signal 35")])
async def test_a_call_is_said_to_be_killed_by_any_signal(order, code, how):
    assert f"killed by {how}" in str(killed_failure(order("misbehaving:leave"), code))


async def test_a_fork_that_a_tool_left_behind_dies_with_its_worker(executor, order, marked):
    await executor.call(order("misbehaving:leave_a_fork"))

    await executor.close()

    assert [] == marked()


async def test_a_tool_in_the_loop_is_cancelled_when_its_time_is_up(executor, order, failure):
    failed = await failure(executor.call(order("misbehaving:wait_for_ever")))

    assert "timeout" == failed.kind
    assert 1 == len(asyncio.all_tasks())


async def test_a_tool_in_the_loop_that_swallows_cancellation_is_left_behind(
    executor, order, failure
):
    failed = await failure(executor.call(order("misbehaving:swallow_cancellation")))

    assert "timeout" == failed.kind


async def test_a_tool_in_the_loop_may_wait_for_what_is_cancelled(executor, order, failure):
    failed = await failure(executor.call(order("misbehaving:wait_for_what_is_cancelled")))

    assert "tool_error: CancelledError" == str(failed)


async def test_a_tool_in_the_loop_is_cancelled_with_its_call(executor, order):
    asked = order("misbehaving:wait_for_ever")
    patient = asked.tool.model_copy(update={"timeout_seconds": 1000})
    call = asyncio.create_task(executor.call(replace(asked, tool=patient)))
    await await_until(lambda: len(asyncio.all_tasks()) == 3)

    call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await call

    assert 1 == len(asyncio.all_tasks())
