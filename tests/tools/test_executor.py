"""Running tools: what comes back, and what is left of those that misbehave."""

import asyncio
import os
import resource
import signal
import time
from pathlib import Path

import psutil
import pytest
from msgspec.structs import replace

from cueline.errors import ToolImportError
from cueline.testing.wait import PATIENCE_SECONDS, await_until
from cueline.tools.executor import ProcessToolExecutor
from cueline.tools.shell import run_command
from cueline.tools.tool import load


async def test_an_async_tool_runs_in_the_loop(executor, order, marked):
    output = await executor.call(order("examples:greet", name="Ada"))

    assert b"hello Ada" == output.content
    assert [] == marked()


async def test_arguments_that_do_not_fit_start_nothing(executor, order, marked, failure):
    failed = await failure(executor.call(order("examples:double", number="three")))

    assert "invalid_arguments" == failed.kind
    assert [] == marked()


async def test_a_tool_that_never_returns_is_killed_with_its_daemon(
    executor, order, marked, failure
):
    failed = await failure(executor.call(order("misbehaving:hang")))

    assert "timeout: hang did not end within 0.3 s and was killed; it may have had effects" == str(
        failed
    )
    assert [] == marked()


async def test_a_tool_that_takes_no_hint_is_killed(executor, order, marked, failure):
    failed = await failure(executor.call(order("misbehaving:hang_stubbornly")))

    assert "timeout" == failed.kind
    assert [] == marked()


async def test_the_next_call_gets_a_new_worker(executor, order, failure):
    await failure(executor.call(order("misbehaving:hang")))

    assert b"6" == (await executor.call(order("examples:double", number=3))).content


TIDY = "trap 'touch tidy; exit' TERM; touch begun; tail -f /dev/null & wait"


@pytest.mark.parametrize(
    "hanging",
    [("misbehaving:hang_and_tidy_up", {}), (run_command, {"command": TIDY})],
    ids=["a tool", "a command"],
)
async def test_what_is_cancelled_may_tidy_up(patient_executor, order, workspace, marked, hanging):
    tool, arguments = hanging
    call = asyncio.create_task(patient_executor.call(order(tool, **arguments)))
    await await_until((workspace / "begun").exists)

    call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await call

    assert (workspace / "tidy").exists()
    assert [] == marked()


async def test_a_tool_is_told_to_end_whatever_the_one_before_it_did(executor, order, workspace):
    await executor.call(order("misbehaving:take_no_hint"))
    call = asyncio.create_task(executor.call(order("misbehaving:hang_and_tidy_up")))
    await await_until((workspace / "begun").exists)

    call.cancel()
    await asyncio.wait({call})

    assert (workspace / "tidy").exists()


async def test_a_command_says_how_it_ended_whatever_the_tool_before_it_did(executor, order):
    await executor.call(order("misbehaving:forget_children"))

    output = await executor.call(order(run_command, command="exit 3"))

    assert b"[exit status 3]" == output.content


async def test_cancelling_twice_kills_at_once(patient_executor, order, workspace, marked):
    command = "trap 'touch told' TERM; touch begun; while true; do tail -f /dev/null & wait; done"
    call = asyncio.create_task(patient_executor.call(order(run_command, command=command)))
    await await_until((workspace / "begun").exists)

    call.cancel()
    await await_until((workspace / "told").exists)
    call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await call

    await await_until(lambda: marked() == [])


@pytest.mark.parametrize("closes", [False, True])
async def test_a_call_that_is_given_up_keeps_nothing_open(
    patient_executor, order, workspace, closes
):
    before = sorted(os.listdir("/proc/self/fd"))  # noqa: PTH208 - a listing, not a path
    command = "trap 'touch told' TERM; touch begun; while true; do tail -f /dev/null & wait; done"
    call = asyncio.create_task(patient_executor.call(order(run_command, command=command)))
    await await_until((workspace / "begun").exists)
    call.cancel()
    await await_until((workspace / "told").exists)

    closing = [asyncio.create_task(patient_executor.close())] if closes else []
    call.cancel()
    await asyncio.wait({call})

    await asyncio.wait_for(asyncio.gather(*closing), PATIENCE_SECONDS)
    assert before == sorted(os.listdir("/proc/self/fd"))  # noqa: PTH208 - as above


async def test_a_call_begins_where_the_one_before_it_did(executor, order):
    went = [await executor.call(order("misbehaving:move", to="/")) for _ in range(2)]

    assert [bytes(Path.cwd())] * 2 == [output.content for output in went]


@pytest.mark.parametrize("hard", [False, True])
async def test_a_call_has_the_limits_that_the_one_before_it_had(executor, order, hard):
    before, _, told = (await executor.call(order("misbehaving:limits"))).content.partition(b" ")
    await executor.call(order("misbehaving:limit", files=50, hard=hard))
    after, _, again = (await executor.call(order("misbehaving:limits"))).content.partition(b" ")

    assert (told, hard) == (again, before != after)  # a new worker, where need be


async def test_names_of_files_that_are_no_text_are_shown_with_marks(
    executor, order, workspace, failure
):
    os.close(os.open(bytes(workspace) + b"/caf\xe9", os.O_CREAT))

    listed = await executor.call(order("misbehaving:list_names"))
    failed = await failure(executor.call(order("misbehaving:list_names", raises=True)))

    assert '["caf\ufffd"]' == listed.content.decode()
    assert "tool_error" == failed.kind


async def test_a_worker_killed_while_idle_is_replaced(executor, order):
    pid = int((await executor.call(order("misbehaving:process"))).content)
    os.kill(pid, signal.SIGKILL)
    await await_until(lambda: not psutil.pid_exists(pid))

    assert b"6" == (await executor.call(order("examples:double", number=3))).content


async def test_calls_run_side_by_side(order, workspace):
    executor = ProcessToolExecutor(workers=2)
    os.mkfifo(workspace / "door")

    met = await asyncio.gather(
        *(executor.call(order("misbehaving:meet", name=n)) for n in ("a", "b"))
    )

    assert [b"met b", b"met a"] == [output.content for output in met]
    await executor.close()


async def test_a_call_waits_for_a_worker_and_its_time_does_not_count(order, workspace, monkeypatch):
    executor = ProcessToolExecutor(workers=1)
    os.mkfifo(workspace / "door")
    command = "touch begun; cat door"
    slow = asyncio.create_task(executor.call(order(run_command, command=command)))
    await await_until((workspace / "begun").exists)
    brief = with_timeout(order("examples:double", number=3), 100)
    waiting = asyncio.create_task(executor.call(brief))
    await asyncio.wait([waiting], timeout=0)

    loop = asyncio.get_running_loop()
    monkeypatch.setattr(loop, "time", lambda: time.monotonic() + 101)
    (workspace / "door").write_text("go")

    await slow
    assert b"6" == (await waiting).content
    await executor.close()


def with_timeout(order, seconds):
    spec = order.tool.model_copy(update={"timeout_seconds": seconds})
    return replace(order, tool=spec)


async def test_no_tool_sees_what_the_agent_calls_secret(executor, order, monkeypatch):
    monkeypatch.setenv("DATABASE", "planted")
    monkeypatch.setenv("GITHUB_TOKEN", "planted")
    plain = order("misbehaving:environment")
    secretive = replace(order("misbehaving:environment"), secrets=("DATABASE",))

    assert b'"DATABASE":"planted"' in (await executor.call(plain)).content
    assert b"planted" not in (await executor.call(secretive)).content


async def test_secrets_keep_to_the_number_of_workers(order, monkeypatch, marked):
    monkeypatch.setenv("DATABASE", "planted")
    executor = ProcessToolExecutor(workers=1)
    secretive = replace(order("misbehaving:environment"), secrets=("DATABASE",))

    await executor.call(order("misbehaving:environment"))
    await executor.call(secretive)

    assert 2 == len([p for p in marked() if p.pid != os.getpid()])  # a worker and its guardian
    await executor.close()


async def test_workers_that_start_at_once_keep_to_their_number(order, monkeypatch, marked):
    monkeypatch.setenv("DATABASE", "planted")
    executor = ProcessToolExecutor(workers=2)
    secretive = replace(order("misbehaving:environment"), secrets=("DATABASE",))
    await executor.call(order("misbehaving:environment"))

    await asyncio.gather(executor.call(secretive), executor.call(secretive))

    assert 4 == len([p for p in marked() if p.pid != os.getpid()])  # two, each with a guardian
    await executor.close()


async def test_two_slow_commands_do_not_hold_up_the_others(executor, order, workspace):
    os.mkfifo(workspace / "door")
    door = os.open(workspace / "door", os.O_RDWR)
    command = "mktemp begun.XXXX; read < door"
    waiting = asyncio.gather(*(executor.call(order(run_command, command=command)) for _ in "12"))
    await await_until(lambda: len(list(workspace.glob("begun.*"))) == 2)

    async with asyncio.timeout(PATIENCE_SECONDS):
        output = await executor.call(order("examples:double", number=3))

    assert (b"6", False) == (output.content, waiting.done())
    os.write(door, b"go\ngo\n")
    await waiting
    os.close(door)


async def test_signals_that_the_runner_blocks_reach_the_tools(executor, order):
    signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])
    try:
        output = await executor.call(order(run_command, command="kill -INT $$"))
    finally:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGINT])

    assert b"[killed by SIGINT]" == output.content


async def test_closing_kills_what_runs(executor, order, workspace, marked, failure):
    call = asyncio.create_task(
        executor.call(order(run_command, command="touch begun; tail -f /dev/null"))
    )
    await await_until((workspace / "begun").exists)

    await executor.close()

    assert "was stopped together with its runner" in (await failure(call)).message
    assert [] == marked()


# Else each try would take more of what there is too little of.
async def test_a_worker_that_cannot_be_started_keeps_nothing_open(executor, order, failure):
    before = sorted(os.listdir("/proc/self/fd"))  # noqa: PTH208 - a listing, not a path
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    free = [number for number in range(len(before) + 5) if str(number) not in before]

    resource.setrlimit(resource.RLIMIT_NOFILE, (free[3], hard))  # three are left, also below gaps
    try:
        failed = await failure(executor.call(order("examples:double", number=3)))
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))

    told = "no worker can be started: OSError: [Errno 24] Too many open files"
    assert ("not_started", told) == (failed.kind, failed.message)
    assert before == sorted(os.listdir("/proc/self/fd"))  # noqa: PTH208 - as above


async def test_a_command_that_no_process_can_be_had_for_was_not_started(executor, order, failure):
    await executor.call(order("examples:open_no_more_files"))

    failed = await failure(executor.call(order(run_command, command="true")))

    told = "no process can be started: [Errno 24] Too many open files"
    assert "not_started" == failed.kind
    assert failed.message.startswith(told)


async def test_a_closed_executor_starts_nothing(executor, order, marked, failure):
    await executor.close()

    failed = await failure(executor.call(order("examples:double", number=3)))

    assert "the tool did not run" in failed.message
    assert [] == marked()


async def test_a_file_that_runs_an_agent_when_imported_is_refused(tmp_path):
    script = tmp_path / "script.py"
    script.write_text(
        "from cueline.tools.executor import ProcessToolExecutor\nProcessToolExecutor()\n"
    )

    with pytest.raises(ToolImportError, match="it runs an agent when it is imported"):
        load(f"{script}:anything")
