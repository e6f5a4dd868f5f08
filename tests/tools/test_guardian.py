"""What a tool started dies with its runner, however the runner dies."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from cueline.isolation.ladder import rung
from cueline.testing.wait import wait_until

RUNNER = Path(__file__).with_name("runner.py")

DAEMONS = {
    "in the foreground": "touch begun; sleep 1000",
    "in the background": "nohup sleep 1000 & touch begun; sleep 1000",
    "in a session of its own": "setsid sleep 1000 & touch begun; sleep 1000",
    "orphaned": "(setsid sh -c 'sleep 1000 & sleep 1000' &); touch begun; sleep 1000",
    "deaf to signals": "trap '' TERM HUP INT; setsid nohup sleep 1000 & touch begun; sleep 1000; :",
    "without our environment": "setsid env -i sleep 1000.5 & touch begun; sleep 1000",
    "hopping": 'hop() { setsid bash -c "$(declare -f hop); hop" & }; touch begun; hop; sleep 1000',
}


@pytest.fixture
def running(workspace, popen):
    """Start a runner in the middle of a command."""

    def start(command, *prefix):
        return popen(
            [*prefix, sys.executable, RUNNER, workspace, command],
            env=os.environ | {"MARK": str(workspace)},
            stdout=subprocess.PIPE,
            text=True,
        )

    return start


def marked(mark):
    """Tell the processes that carry the mark, and those that dropped it but sleep as told."""
    found = []
    for process in psutil.process_iter():
        try:
            told = process.environ().get("MARK") == mark or process.cmdline()[-1:] == ["1000.5"]
            if told and process.status() != psutil.STATUS_ZOMBIE:
                found.append(process)
        except psutil.Error:
            continue
    return found


@pytest.mark.parametrize(
    ("kind", "death"), [*((kind, signal.SIGKILL) for kind in DAEMONS), ("orphaned", signal.SIGTERM)]
)
def test_nothing_survives_the_runner(running, workspace, kind, death):
    runner = running(DAEMONS[kind])
    wait_until((workspace / "begun").exists)
    assert 3 < len(marked(str(workspace)))

    runner.send_signal(death)

    wait_until(lambda: marked(str(workspace)) == [])


def test_the_guardian_is_no_child_of_its_runner(running, workspace):
    # Ray kills the children of a worker that exits; the guardian has to outlive it.
    runner = running("touch begun; sleep 1000")
    wait_until((workspace / "begun").exists)

    assert [] == psutil.Process(runner.pid).children()


def test_a_tool_has_the_usual_priority_though_its_runner_has_not(running):
    if os.geteuid():
        pytest.skip("only root may raise a priority again")

    runner = running("nice; touch begun", "nice", "-n", "15")

    assert "0\n[exit status 0]\n" == runner.communicate()[0]


HINT = """
import signal, subprocess, sys
from cueline.testing.wait import wait_until
from cueline.tools import guardian
from pathlib import Path

tidy = "trap 'touch tidied; exit 3' TERM; touch begun; while :; do read line <door; done"
seen = ["--dev-bind", "/", "/", "--unshare-user", "--unshare-pid", "--die-with-parent"]
command = subprocess.Popen([sys.argv[1], *seen, "sh", "-c", tidy])
wait_until(Path("begun").exists)
guardian.kill_below(signal.SIGTERM)
sys.exit(command.wait())
"""


def test_an_isolated_command_gets_the_hint_to_end_and_not_what_isolates_it(workspace):
    if not (bwrap := rung(kind="bwrap").program):
        pytest.skip("bwrap isolates nothing here")
    os.mkfifo(workspace / "door")

    done = subprocess.run([sys.executable, "-c", HINT, bwrap], cwd=workspace, check=False)

    assert 3 == done.returncode
    assert (workspace / "tidied").exists()
