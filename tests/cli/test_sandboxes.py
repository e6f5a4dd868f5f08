"""`cueline sandboxes`: sandboxes of sessions that work, wait for a person, and wait for a slot."""

import json

import pytest

from cueline.tools.sandbox import sandbox_backend

ASKS = """
[[reply]]
calls = [{ name = "run_command", arguments = { command = "echo one > made" } }]
[[reply]]
calls = [{ name = "write_file", arguments = { path = "made", content = "two\\n" } }]
"""
WORKS = """
[[reply]]
calls = [{ name = "run_command", arguments = { command = "sleep 100" } }]
"""
MORE = """
sandbox = "local"
[policy]
approval = ["off"]
rules = [{ name = "writes", answer = "ask", tools = ["write_file"] }]
"""


@pytest.fixture
def pool(shell, monkeypatch):
    """A shell with one slot: `one` waits for a person, `two` works, `three` waits for the slot."""
    monkeypatch.setenv("XDG_STATE_HOME", str(shell.folder / "state"))
    monkeypatch.setenv("CUELINE_SANDBOXES_MAX_STARTED", "1")
    sandbox_backend.cache_clear()
    tools = ("run_command", "write_file")
    asks = shell.agent(ASKS, tools=tools, more=MORE)
    assert 3 == shell("run", "Go", "--agent", asks, "--inline", "--id", "one").exit_code
    works = shell.agent(WORKS, tools=tools, more=MORE)
    shell.start("run", "Go", "--agent", works, "--inline", "--id", "two")
    shell.wait_for("two", "ToolStarted")
    shell.start("run", "Go", "--agent", works, "--inline", "--id", "three")
    shell.wait_for("three", "SessionWaiting")
    return shell


def test_the_sandboxes_are_listed_with_the_slots_and_the_queue(pool):
    slots, head, one, two, queue, three = pool("sandboxes").stdout.splitlines()

    assert "slots: 1 of 1 used" == slots
    assert ["SANDBOX", "BACKEND", "IS", "FOR", "PLACE"] == head.split()
    assert ["one.1", "local", "stopped"] == one.split()[:3]
    assert ["two.1", "local", "started"] == two.split()[:3]
    assert (["QUEUE", "SESSION", "FOR"], ["1", "three"]) == (queue.split(), three.split()[:2])

    told = pool.json("sandboxes")
    assert (1, 1, ["one", "two"]) == (
        told["max_started"],
        told["used"],
        [each["session"] for each in told["sandboxes"]],
    )
    assert ["three"] == [each["session"] for each in told["queue"]]


def test_a_log_without_sandboxes_says_how_an_agent_gets_one(finished):
    said = finished("sandboxes").stdout

    assert "no session has asked for a sandbox in .cueline/log.db" in said
    assert '`sandbox = "local"` in the file of an agent' in said
    none = {"max_started": None, "used": 0, "sandboxes": [], "queue": []}
    assert none == json.loads(finished("sandboxes", "--json").stdout)
