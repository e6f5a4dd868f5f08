"""Calling tools: what comes back."""

import asyncio
import os

import pytest
from msgspec.structs import replace

from cueline.errors import ToolImportError
from cueline.events.sanitize import CUT
from cueline.tools.shell import run_command

pytestmark = pytest.mark.asyncio(loop_scope="module")


async def test_a_sync_tool_runs_in_another_process(warm_executor, order):
    output = await warm_executor.call(order("misbehaving:process"))

    assert os.getpid() != int(output.content)


async def test_an_async_tool_may_run_in_a_worker(warm_executor, order):
    output = await warm_executor.call(order("misbehaving:wait_elsewhere"))

    assert os.getpid() != int(output.content)


async def test_workers_stay_warm(warm_executor, order):
    pids = [(await warm_executor.call(order("misbehaving:process"))).content for _ in range(3)]

    assert 1 == len(set(pids))


async def test_the_tool_is_told_its_key(warm_executor, order):
    output = await warm_executor.call(order("examples:order_tea", kind="green", cups=2))

    assert b"2 of green, session-default/1/1.0" == output.content


async def test_a_tool_that_cannot_be_imported_is_named(warm_executor, order):
    spec = order("examples:double").tool.model_copy(update={"target": "no.such.module:double"})

    with pytest.raises(ToolImportError, match=r"no\.such\.module:double: No module named"):
        await warm_executor.call(replace(order("examples:double", number=1), tool=spec))


async def test_a_tool_without_its_workspace_does_not_run(warm_executor, order, failure):
    lost = replace(order(run_command, command="true"), workspace=None)

    assert "needs a workspace" in (await failure(warm_executor.call(lost))).message


async def test_fifty_megabytes_come_whole_while_the_loop_goes_on(warm_executor, order):
    big = asyncio.create_task(warm_executor.call(order("misbehaving:huge", size=50_000_000)))
    meanwhile = 0
    while not big.done():
        await warm_executor.call(order("examples:greet", name="Ada"))
        meanwhile += 1

    assert b"\xff\0" * 25_000_000 == (await big).content
    assert 10 < meanwhile


async def test_more_than_is_kept_is_cut_and_counted(warm_executor, order):
    output = await warm_executor.call(order("misbehaving:huge", size=110_000_000))

    assert 110_000_000 == output.truncated_from
    assert 100 * 1024 * 1024 + len(CUT.encode()) == len(output.content)


async def test_what_a_tool_prints_does_not_mix_with_what_it_returns(warm_executor, order):
    assert b"said" == (await warm_executor.call(order("misbehaving:babble"))).content
    assert b"said" == (await warm_executor.call(order("misbehaving:babble"))).content


async def test_a_tool_has_no_input(warm_executor, order):
    assert b"" == (await warm_executor.call(order("misbehaving:read_input"))).content


async def test_half_a_surrogate_pair_comes_as_bytes(warm_executor, order):
    assert b"\xed\xa0\x80" == (await warm_executor.call(order("misbehaving:half_a_pair"))).content


async def test_what_is_neither_text_nor_json_is_told(warm_executor, order, failure):
    failed = await failure(warm_executor.call(order("misbehaving:strange")))

    assert "it ran, but what it returned is neither text nor JSON" in failed.message


async def test_an_exception_is_told_by_name_and_without_a_traceback(warm_executor, order, failure):
    failed = await failure(warm_executor.call(order("misbehaving:fail")))

    assert "tool_error: ConnectionError: network error: timeout" == str(failed)


async def test_a_failure_that_looks_transient_is_not_tried_again(
    warm_executor, order, workspace, failure
):  # D9
    await failure(warm_executor.call(order("misbehaving:fail_and_count")))

    assert "session-default/1/1.0 1\n" == (workspace / "journal").read_text()


async def test_a_tool_that_exits_is_a_tool_that_failed(warm_executor, order, failure):
    assert "tool_error: SystemExit: enough" == str(
        await failure(warm_executor.call(order("misbehaving:ask_to_exit")))
    )


async def test_a_tool_in_the_loop_cannot_end_the_runner(warm_executor, order, failure):
    assert "tool_error: SystemExit: enough" == str(
        await failure(warm_executor.call(order("misbehaving:exit_the_loop")))
    )
