"""What a running tool says of its progress, on its way out of the worker."""

import os
from contextlib import suppress

import pytest

from cueline.tools.executor import ProcessToolExecutor
from cueline.tools.progress import LONGEST, MOST_A_SECOND, ProgressReporter
from cueline.tools.worker import report_progress


@pytest.fixture
async def run(order):
    """Run a tool of `reporting.py`; return its output, and its progress."""
    told = []
    executor = ProcessToolExecutor(
        workers=1, on_progress=lambda order, *progress: told.append((order.key, *progress))
    )

    async def call(tool, **arguments):
        output = await executor.call(order(f"reporting:{tool}", **arguments))
        return output.content.decode(), [progress for _, *progress in told]

    yield call
    await executor.close()


@pytest.mark.parametrize("tool", ["step", "step_in_loop"])
async def test_the_progress_of_a_call_comes_before_its_result(tool, run):
    output, told = await run(tool)

    assert "done" == output
    assert [[0.5, "half of the files"], [None, "the rest"]] == told


async def test_a_tool_that_says_it_too_often_is_heard_ten_times_a_second(run):
    output, told = await run("step_often", times=500)

    assert 3_000_000 == len(output)
    assert MOST_A_SECOND == len(told)
    assert "é" * LONGEST == told[0][1]


async def test_a_share_that_is_none_is_brought_into_range(run):
    _, told = await run("step_wrongly")

    assert [1.0, 0.0, None, 1.0] == [share for share, _ in told]


async def test_a_child_process_and_a_copy_say_nothing(run):
    assert ("done", []) == await run("step_elsewhere")


async def test_what_a_thread_says_after_the_end_spoils_no_result(run):
    first = await run("step_late")
    second = await run("let_late_ones_go")

    assert [("done", []), ("1 went on", [])] == [first, second]


def test_nothing_waits_for_a_runner_that_does_not_read():
    source, target = os.pipe()
    os.set_blocking(target, False)
    with suppress(BlockingIOError):
        while True:
            os.write(target, b"x" * 4096)
    os.set_blocking(target, True)

    ProgressReporter(lambda *progress: report_progress(target, *progress))(0.5, "half")

    for each in (source, target):
        os.close(each)
