"""The shell tool: what a command sees, and what is left of it."""

import fcntl
import os
import sys
from functools import partial
from itertools import chain, repeat
from types import SimpleNamespace

import psutil
import pytest

from cueline.errors import ToolFailedError
from cueline.events.agent_parts import Isolation
from cueline.events.sanitize import CUT
from cueline.tools import guarded_process
from cueline.tools.shell import run_command
from cueline.tools.tool import OUTPUT_LIMIT


@pytest.fixture(params=["none", "auto"])
def isolation(request):
    """Each test of a command, without isolation and with it."""
    return Isolation(kind=request.param)


@pytest.fixture
def run(use):
    def call(command, **arguments):
        return use(run_command, command=command, **arguments).content.decode()

    return call


def test_output_and_errors_come_in_order_with_the_exit_status(run):
    assert "a\nb\nc\n[exit status 3]" == run("echo a; echo b >&2; echo c; exit 3")


def test_a_command_runs_in_the_workspace(run, workspace):
    assert f"{workspace}\n[exit status 0]" == run("pwd")


def test_a_command_that_prints_nothing_still_says_how_it_ended(run):
    assert "[exit status 0]" == run("true")
    assert "[killed by SIGKILL]" == run("kill -KILL $$")
    assert "a\n[killed by signal 35]" == run("echo a; kill -35 $$")  # one without a name


@pytest.mark.parametrize("signal", ["TERM", "INT", "HUP"])
def test_a_command_that_tells_its_parent_to_end_ends_by_itself(run, signal):
    assert "alive\n[exit status 0]" == run(f"kill -{signal} $PPID; echo alive")
    assert f"[killed by SIG{signal}]" == run(f"kill -{signal} $$")


def test_no_more_files_are_closed_than_are_open(run, monkeypatch):
    """A system may let a billion be open, and Python may have to close them one by one."""
    close = os.closerange

    def one_by_one(first, end):
        assert end - first == 1
        close(first, end)

    monkeypatch.setattr(os, "closerange", one_by_one)

    assert "[exit status 0]" == run("true")


def test_a_command_has_no_input(run):
    assert "[exit status 0]" == run("cat")


def test_what_a_command_leaves_in_the_background_is_killed(run, workspace):
    run("mkfifo begun; sh -c 'echo >begun; exec tail -f /dev/null' & cat begun")

    assert [] == at_work(workspace)


GETTING_AWAY = {
    "in a session of its own": "setsid sh -c '{}' &",
    "orphaned": "(setsid sh -c '{}' &)",
    "deaf to signals": "trap '' TERM HUP INT; setsid nohup sh -c '{}' &",
    "without our environment": "setsid env -i sh -c '{}' &",
}


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="orphans are lost elsewhere")
@pytest.mark.parametrize("how", GETTING_AWAY.values(), ids=GETTING_AWAY)
@pytest.mark.parametrize("end", ["exit 4", "kill -KILL $$"])
def test_nothing_survives_its_command(run, workspace, how, end):
    daemon = how.format("echo >begun; tail -f /dev/null; :")

    run(f"mkfifo begun\n{daemon}\ncat begun; {end}")

    assert [] == at_work(workspace)


def test_nothing_survives_a_command_whose_time_is_up(run, workspace, monkeypatch):
    moments = chain([0.0, 0.0], repeat(100.0))
    monkeypatch.setattr(guarded_process, "time", SimpleNamespace(monotonic=partial(next, moments)))
    command = "trap '' TERM; setsid tail -f /dev/null & echo begun; wait"

    with pytest.raises(ToolFailedError, match="may have had effects"):
        run(command, timeout_seconds=100)

    assert [] == at_work(workspace)


def at_work(workspace):
    """Tell the processes whose working directory is the workspace, as seen from outside."""
    found = []
    for process in psutil.process_iter():
        try:
            if process.cwd() == str(workspace) and process.status() != psutil.STATUS_ZOMBIE:
                found.append(process)
        except psutil.Error:
            continue
    return found


def test_what_goes_on_printing_in_the_background_is_not_waited_for(run):
    daemon = "mkfifo begun; setsid sh -c 'echo >begun; exec yes' &"

    assert run(f"{daemon} cat begun; exit 4").endswith("\n[exit status 4]")


def test_a_command_that_takes_too_long_is_killed_and_its_output_told(run, monkeypatch):
    # Its time is up as soon as it has printed something.
    moments = chain([0.0, 0.0], repeat(100.0))
    monkeypatch.setattr(guarded_process, "time", SimpleNamespace(monotonic=partial(next, moments)))

    with pytest.raises(ToolFailedError, match="may have had effects") as failed:
        run("echo begun; tail -f /dev/null", timeout_seconds=100)

    assert "timeout" == failed.value.kind
    assert failed.value.message.endswith(f"The last it printed:\nbegun\n{CUT}")


def test_more_output_than_is_kept_is_counted(use):
    output = use(run_command, command=f"head -c {OUTPUT_LIMIT + 5} /dev/zero")

    assert OUTPUT_LIMIT + 5 == output.truncated_from
    assert output.content.endswith(
        f"\0{CUT}\n[the first 104,857,600 of 104,857,605 bytes]\n[exit status 0]".encode()
    )


@pytest.mark.skipif(not hasattr(fcntl, "F_SETPIPE_SZ"), reason="Linux only")
def test_a_look_takes_all_that_is_in_a_pipe_that_was_widened():
    source, target = os.pipe()
    with os.fdopen(source), os.fdopen(target, "wb", buffering=0) as pipe:
        fcntl.fcntl(pipe, fcntl.F_SETPIPE_SZ, 1 << 20)
        pipe.write(bytes(1 << 20))

        guarded_process.drain(source, printed := guarded_process.Printed())

        assert 1 << 20 == printed.size


def test_a_workspace_that_is_not_there_is_told(run, workspace):
    workspace.rmdir()

    with pytest.raises(ToolFailedError, match="the workspace is not there"):
        run("true")


def test_the_model_is_told_that_a_command_is_isolated():
    assert "it is isolated" in run_command.spec().description
    assert run_command.spec().sensitive
