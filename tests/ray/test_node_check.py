"""What is looked at on each node of a cluster before anything is recorded or started there."""

import os
import subprocess
import sys

import pytest
import ray

from cueline.cluster.cluster_context import VERSION
from cueline.cluster.node_check import runners_in
from cueline.runtime.up_record import find_up

TOOL = """
from cueline import tool

@tool
def greet(name: str) -> str:
    return f"Hello, {name}"
"""
AGENT = """
name = "greeter"
provider = "scripted"
model = "script.toml"
tools = ["tool_of_a_test:greet"]
"""
PROGRAM = """
import asyncio, os, sys
os.environ["RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER"] = "0"  # the cluster is on 127.0.0.1 alone
import ray
from cueline import Agent, open_runtime

async def main():
    if "--own" in sys.argv:
        ray.init(configure_logging=False, log_to_driver=False)
    agent = Agent.from_file("agent.toml")
    async with open_runtime(sys.argv[-1]) as runtime:
        starts = [runtime.start(agent, "Greet.") for _ in range(2)]
        for error in await asyncio.gather(*starts, return_exceptions=True):
            print(type(error).__name__)
    print(ray.is_initialized())

if __name__ == "__main__":
    asyncio.run(main())
"""
SCRIPT = """
[[reply]]
text = "Hello."
"""


@pytest.fixture
def cueline(tmp_path, cluster):
    """Run commands that know modules which the nodes of the cluster do not know."""
    modules = tmp_path / "modules"
    modules.mkdir()
    (tmp_path / "agent.toml").write_text(AGENT)
    (tmp_path / "script.toml").write_text(SCRIPT)
    environ = {**os.environ, "PYTHONPATH": str(modules), "RAY_ADDRESS": cluster.address}

    def run(*words, program=("-m", "cueline.cli")):
        return subprocess.run(
            [sys.executable, *program, *words, "--log", str(tmp_path / "log.db")],
            check=False,
            capture_output=True,
            text=True,
            cwd=tmp_path,
            env=environ,
        )

    yield run
    run("down")


def test_an_up_says_which_nodes_have_another_cueline(cueline, cluster, tmp_path):
    about = tmp_path / "modules/cueline-9.9.9.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: cueline\nVersion: 9.9.9\n")

    done = cueline("up", "--detach")
    found = cueline("doctor", "--address", cluster.address)

    reason = f"1 of 1 node cannot run cueline 9.9.9: 127.0.0.1 has cueline {VERSION}"
    advice = "; install cueline 9.9.9 on each"
    assert (True, True) == (done.returncode > 0, reason + advice in done.stderr), done.stderr
    assert find_up(tmp_path / "log.db") is None
    assert (1, True) == (
        found.returncode,
        f"✗ Ray nodes: {cluster.address}: {reason}" in found.stdout,
    )


@pytest.mark.parametrize(
    "is_up", [pytest.param(True, id="up"), pytest.param(False, id="alone", marks=pytest.mark.long)]
)
def test_a_run_says_on_which_nodes_a_tool_cannot_be_imported(cueline, tmp_path, is_up):
    (tmp_path / "modules/tool_of_a_test.py").write_text(TOOL)
    if is_up:
        assert 0 == cueline("up", "--detach").returncode

    done = cueline("run", "Greet.", "--agent", "agent.toml")
    sessions = cueline("list", "--json")

    reason = "1 of 1 node with runners cannot run its tools: 127.0.0.1 has no greet (No module"
    assert (True, True) == (done.returncode > 0, reason in done.stderr), done.stderr
    assert "[]" == sessions.stdout.strip()


@pytest.mark.parametrize(
    "own",
    [
        pytest.param(False, id="without Ray", marks=pytest.mark.long),
        pytest.param(True, id="after its own ray.init()"),
    ],
)
def test_sessions_that_a_program_starts_at_once_are_all_checked(cueline, tmp_path, own):
    (tmp_path / "modules/tool_of_a_test.py").write_text(TOOL)
    (tmp_path / "program.py").write_text(PROGRAM)
    assert 0 == cueline("up", "--detach").returncode

    done = cueline(*["--own"] * own, program=["program.py"])

    assert ["ToolImportError", "ToolImportError", str(own)] == done.stdout.split(), done.stderr


def test_a_runner_that_has_just_ended_is_not_asked(cluster, monkeypatch):
    ended = [{"namespace": "cueline-tests", "name": "up/runner-1@0"}]
    monkeypatch.setattr(ray.util, "list_named_actors", lambda **_: ended)

    assert [] == runners_in("cueline-tests", "up")
