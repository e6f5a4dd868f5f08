"""What a user types, as real processes, on the tests' own cluster."""

import json
import os
import signal
import subprocess
import sys

import pytest

from cueline.on_ray import find_up
from cueline.testing.wait import PATIENCE_SECONDS, wait_until

AGENT = """
name = "greeter"
provider = "scripted"
model = "script.toml"
"""
SLOW = """
[[reply]]
delay_seconds = 3
text = "First."
calls = [{ name = "unknown", arguments = {} }]

[[reply]]
text = "Here I am."
"""
SCRIPT = """
[[reply]]
text = "Good evening."
"""


@pytest.fixture
def cueline(tmp_path, cluster):
    (tmp_path / "agent.toml").write_text(AGENT)
    (tmp_path / "script.toml").write_text(SCRIPT)
    log = ["--log", str(tmp_path / "log.db")]

    def run(*words):
        command = [sys.executable, "-m", "cueline.cli", *words, *log]
        return subprocess.run(command, check=False, capture_output=True, text=True)

    yield run
    run("down")


@pytest.fixture
def up(cueline, cluster):
    done = cueline("up", "--detach", "--address", cluster.address)
    assert 0 == done.returncode, done.stderr


def test_what_runs_is_attached_to_shown_and_taken_down(cueline, up, tmp_path):
    ran = cueline("run", "Greet.", "--agent", str(tmp_path / "agent.toml"), "--json")
    again = cueline("up")
    status = json.loads(cueline("status", "--json").stdout)
    downs = [cueline("down").returncode for _ in range(2)]
    after = json.loads(cueline("status", "--json").stdout)

    assert (0, "Good evening.") == (ran.returncode, json.loads(ran.stdout)["result"])
    assert (2, True) == (again.returncode, "up already" in again.stdout)
    assert {"dispatcher", "host", "runner"} == {each["role"] for each in status["processes"]}
    assert ([0, 0], None, []) == (downs, after["up"], after["processes"])


def test_what_a_killed_keeper_left_on_a_cluster_is_taken_down(cueline, up, tmp_path):
    record = find_up(tmp_path / "log.db")
    os.kill(record.keeper.pid, signal.SIGKILL)
    wait_until(lambda: not record.lives)

    assert 0 == cueline("down").returncode
    assert [] == json.loads(cueline("status", "--json").stdout)["processes"]


def test_sigterm_lets_what_is_in_flight_finish_and_starts_nothing(cueline, up, tmp_path):
    """D5, 000-011: `up` records what it finished, and goes; the next owner goes on."""
    (tmp_path / "script.toml").write_text(SLOW)
    started = cueline(
        "run", "Go.", "--agent", str(tmp_path / "agent.toml"), "--detach", "--id", "s"
    )
    assert 0 == started.returncode, started.stderr
    wait_until(lambda: "ModelStarted" in types(cueline))
    record = find_up(tmp_path / "log.db")

    os.kill(record.keeper.pid, signal.SIGTERM)
    wait_until(lambda: not record.lives)

    assert "ModelReplied" in types(cueline)
    assert "ModelRequested" == types(cueline)[-1]
    assert [] == json.loads(cueline("status", "--json").stdout)["processes"]
    assert "Here I am." in cueline("resume", "s", "--inline").stdout


def test_sigterm_pauses_a_run_on_a_cluster_and_takes_its_own_down(cueline, cluster, tmp_path):
    """D5, 000-011, 000-068: paused, not failed; what is in flight finishes first."""
    (tmp_path / "script.toml").write_text(SLOW)
    words = ["run", "Go.", "--agent", str(tmp_path / "agent.toml"), "--id", "s"]
    there = ["--address", cluster.address, "--log", str(tmp_path / "log.db")]
    running = subprocess.Popen(
        [sys.executable, "-m", "cueline.cli", *words, *there],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    wait_until(lambda: "ModelStarted" in types(cueline))

    running.send_signal(signal.SIGTERM)
    said, _ = running.communicate(timeout=PATIENCE_SECONDS)

    assert (3, True) == (running.returncode, "session s: paused" in said), said
    assert "ModelReplied" in types(cueline)
    assert "SessionWaiting" == types(cueline)[-1]
    assert [] == json.loads(cueline("status", "--json").stdout)["processes"]


def types(cueline):
    return [
        json.loads(line)["type"] for line in cueline("export", "s", "--events").stdout.splitlines()
    ]


def test_a_command_on_a_cluster_takes_its_own_down(cueline, cluster, tmp_path):
    words = ("--agent", str(tmp_path / "agent.toml"), "--address", cluster.address)
    ran = cueline("run", "Greet.", *words)

    assert (0, "") == (
        ran.returncode,
        ran.stderr.replace(f"connecting to Ray at {cluster.address}\n", ""),
    )
    assert [] == json.loads(cueline("status", "--json").stdout)["processes"]
