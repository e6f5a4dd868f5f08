"""What a user types, as real processes, on the tests' own cluster."""

import asyncio
import json
import os
import signal
import subprocess
import sys

import psutil
import pytest
import ray

from cueline.runtime.open_log import open_log
from cueline.runtime.up_record import find_up
from cueline.testing.wait import PATIENCE_SECONDS, wait_until

CUELINE = [sys.executable, "-m", "cueline.cli"]
AGENT = """
name = "greeter"
provider = "scripted"
model = "script.toml"
"""
SLOW = """
[[reply]]
delay_seconds = 4
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
def cueline(tmp_path, cluster, monkeypatch):
    # What is in flight ends by itself, and is never cut off.
    monkeypatch.setenv("CUELINE_GRACE_SECONDS", "60")
    (tmp_path / "agent.toml").write_text(AGENT)
    (tmp_path / "script.toml").write_text(SCRIPT)
    log = ["--log", str(tmp_path / "log.db")]

    def run(*words):
        command = [*CUELINE, *words, *log]
        return subprocess.run(command, check=False, capture_output=True, text=True)

    yield run
    run("down")


@pytest.fixture
def start(tmp_path, popen):
    """Start a run of the session `s` as a process."""

    def start(*words):
        agent, log = str(tmp_path / "agent.toml"), str(tmp_path / "log.db")
        return popen(
            [*CUELINE, "run", "Go.", "--agent", agent, "--id", "s", "--log", log, *words],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )

    return start


@pytest.fixture
def types(tmp_path):
    """Return the types of its events; read here, for a process of its own may take seconds."""

    async def read():
        async with open_log(tmp_path / "log.db") as log:
            return [fact.type async for _, fact in log.journal().read("session-default/s")]

    return lambda: asyncio.run(read())


@pytest.fixture
def up(cluster, popen, tmp_path):
    """Keep an `up` on the cluster by a process of its own."""
    log = tmp_path / "log.db"
    words = ("up", "--address", cluster.address, "--log", str(log))
    keeper = popen([*CUELINE, *words], stdout=subprocess.DEVNULL, start_new_session=True)
    wait_until(lambda: find_up(log) or keeper.poll() is not None)
    assert find_up(log), "it did not start"


def test_no_file_of_the_working_folder_shadows_a_module(cueline, cluster, tmp_path):
    (tmp_path / "cueline").mkdir()
    (tmp_path / "cueline" / "__init__.py").write_text("raise SystemExit('planted')")
    words = ("Greet.", "--agent", "agent.toml", "--ray", "--address", cluster.address, "--json")
    command = [sys.executable, "-P", "-m", "cueline.cli", "run", *words]

    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)

    assert (0, "Good evening.") == (done.returncode, json.loads(done.stdout)["result"])


def test_what_runs_is_attached_to_shown_and_taken_down(cueline, up, tmp_path):
    ran = cueline("run", "Greet.", "--agent", str(tmp_path / "agent.toml"), "--json")
    again = cueline("up")
    wait_until(lambda: {"dispatcher", "host", "runner"} == roles(cueline))
    # As Ctrl-Z does: it still takes everything down, and itself.
    os.kill(find_up(tmp_path / "log.db").keeper.pid, signal.SIGSTOP)
    downs = [cueline("down").returncode for _ in range(2)]
    wait_until(lambda: not roles(cueline))
    after = json.loads(cueline("status", "--json").stdout)

    assert (0, "Good evening.") == (ran.returncode, json.loads(ran.stdout)["result"])
    assert (2, True) == (again.returncode, "up already" in again.stdout)
    assert ([0, 0], None) == (downs, after["up"])


def test_a_detached_up_on_a_cluster_is_kept_by_ray_until_it_is_taken_down(
    cueline, cluster, tmp_path
):
    log, agent = tmp_path / "log.db", str(tmp_path / "agent.toml")
    up = cueline("up", "--detach", "--address", cluster.address)
    bystander = ray.remote(num_cpus=0)(Bystander).options(name="bystander").remote()
    keeper, first = find_up(log).keeper, dispatcher(log)

    os.kill(first.pid, signal.SIGKILL)
    wait_until(lambda: first.incarnation != dispatcher(log).incarnation)
    ran = cueline("run", "Greet.", "--agent", agent, "--json")
    again = cueline("up", "--detach", "--address", cluster.address, "--json")
    status = json.loads(cueline("status", "--json").stdout)
    down = cueline("down")
    wait_until(lambda: not roles(cueline))

    assert (0, False) == (up.returncode, psutil.pid_exists(keeper.pid)), up.stderr
    assert f"up: kept by Ray at {cluster.address}, cueline" in up.stdout
    assert "Good evening." == json.loads(ran.stdout)["result"]
    assert (0, None) == (again.returncode, json.loads(again.stdout)["pid"])
    assert None is status["up"]["pid"]
    assert ((0, "down\n"), None) == (ended(down), find_up(log))
    assert "here" == ray.get(bystander.greet.remote())
    assert [] == [each for each in all_names() if each.startswith("up/")]


class Bystander:
    """An actor of somebody else."""

    def greet(self):
        return "here"


def all_names():
    return [each["name"] for each in ray.util.list_named_actors(all_namespaces=True)]


def dispatcher(log):
    """Return who has said last that it is the dispatcher."""

    async def ask():
        async with open_log(log) as opened:
            there = [each for each in await opened.board.all() if each.role == "dispatcher"]
            return max(there, key=lambda each: each.beat_us)

    return asyncio.run(ask())


def ended(done):
    return done.returncode, done.stdout


def roles(cueline):
    status = json.loads(cueline("status", "--json").stdout)
    return {each["role"] for each in status["processes"]}


def test_what_a_killed_keeper_left_on_a_cluster_is_taken_down(cueline, up, tmp_path):
    record = find_up(tmp_path / "log.db")
    os.kill(record.keeper.pid, signal.SIGKILL)
    wait_until(lambda: not record.lives)

    assert 0 == cueline("down").returncode
    wait_until(lambda: not roles(cueline))


def test_sigterm_lets_what_is_in_flight_finish_and_starts_nothing(
    cueline, up, start, types, tmp_path
):
    """D5, 000-011: `up` records what it finished, and goes; the next owner goes on."""
    (tmp_path / "script.toml").write_text(SLOW)
    start("--detach")
    wait_until(lambda: "ModelStarted" in types())
    record = find_up(tmp_path / "log.db")

    os.kill(record.keeper.pid, signal.SIGTERM)
    wait_until(lambda: find_up(tmp_path / "log.db") is None)
    # As a second `down` does: it hurries nobody, and waits.
    assert (0, "down\n") == ended(cueline("down"))

    assert not record.lives
    assert "ModelReplied" in types()
    assert "ModelRequested" == types()[-1]
    wait_until(lambda: not roles(cueline))
    assert "Here I am." in cueline("resume", "s", "--inline").stdout


def test_sigterm_pauses_a_run_on_a_cluster_and_takes_its_own_down(
    cueline, cluster, start, types, tmp_path
):
    """D5, 000-011, 000-068: paused, not failed; what is in flight finishes first."""
    (tmp_path / "script.toml").write_text(SLOW)
    running = start("--address", cluster.address)
    wait_until(lambda: "ModelStarted" in types())

    running.send_signal(signal.SIGTERM)
    said, _ = running.communicate(timeout=PATIENCE_SECONDS)

    assert (3, True) == (running.returncode, "session s: paused" in said), said
    assert "ModelReplied" in types()
    assert "SessionWaiting" == types()[-1]
    wait_until(lambda: not roles(cueline))


def test_a_command_on_a_cluster_takes_its_own_down(cueline, cluster, tmp_path):
    words = ("--agent", str(tmp_path / "agent.toml"), "--address", cluster.address)
    ran = cueline("run", "Greet.", *words)

    assert (0, "") == (
        ran.returncode,
        ran.stderr.replace(f"connecting to Ray at {cluster.address}\n", ""),
    )
    wait_until(lambda: not roles(cueline))
