"""Calls that go on as tasks of an MCP server, while the process and the server are killed."""

import json
import sys
from pathlib import Path

import psutil
import pytest

from cueline.testing.wait import wait_until
from tests.cli.test_mcp_servers import ENDS, calls

SERVER = Path(__file__).parents[1] / "mcp_client" / "task_server.py"
BUILT = {"content": [{"type": "text", "text": "a bridge stands"}]}


@pytest.fixture(autouse=True)
def keys(shell, monkeypatch):
    """Have a master key of this test's own, for the handles of tasks."""
    monkeypatch.setenv("CUELINE_KEYS_FOLDER", str(shell.folder / "keys"))


@pytest.fixture
def jobs(shell):
    """Return the folder with the server's task."""
    folder = shell.folder / "jobs"
    folder.mkdir()
    return folder


@pytest.fixture
def builder(shell, jobs):
    """Return an agent whose only call becomes a task."""
    server = f"[mcp.site]\ncommand = {json.dumps([sys.executable, str(SERVER), str(jobs)])}\n"
    more = f"{server}ask = []\nisolation = {{ write = [{json.dumps(str(jobs))}] }}\n"
    return shell.agent(calls("site__build", what="a bridge") + ENDS, more=more)


def ledger(jobs):
    return (jobs / "ledger.txt").read_text().splitlines()


def test_a_task_goes_on_after_the_host_and_the_server_were_killed(shell, builder, jobs):
    process = shell.start("run", "--agent", builder, "--id", "one", "Go.")
    wait_until(lambda: shell.types("one").count("SessionWaiting") > 1)  # it was polled
    below = psutil.Process(process.pid).children(recursive=True)
    process.kill()
    process.wait()
    wait_until(lambda: not any(each.is_running() for each in below))
    assert "job-7" not in shell("export", "one").output
    (jobs / "task.json").write_text(
        json.dumps({"taskId": "job-7", "status": "completed", "result": BUILT})
    )

    ended = shell("resume", "one", "--inline")

    assert 0 == ended.exit_code, ended.output
    assert "a bridge stands" in ended.output
    assert ["build a bridge"] == ledger(jobs)
    assert 1 == shell.types("one").count("ToolStarted")


def test_a_stopped_session_cancels_its_task(shell, builder, jobs):
    process = shell.start("run", "--agent", builder, "--id", "one", "Go.")
    wait_until(lambda: "ToolDeferred" in shell.types("one"))

    assert 0 == shell("stop", "one").exit_code

    process.wait()
    assert ["build a bridge", "cancel job-7"] == ledger(jobs)
    assert "SessionStopped" == shell.types("one")[-1]
