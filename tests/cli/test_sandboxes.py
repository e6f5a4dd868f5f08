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
TOOLS = ("run_command", "write_file")


@pytest.fixture
def pool(shell, monkeypatch):
    """A shell whose log has one slot, with its sandboxes in its own folder."""
    monkeypatch.setenv("XDG_STATE_HOME", str(shell.folder / "state"))
    monkeypatch.setenv("CUELINE_SANDBOXES_MAX_STARTED", "1")
    sandbox_backend.cache_clear()
    return shell


@pytest.fixture
def busy(pool):
    """A shell: `one` waits for a person, `two` works, `three` waits for the slot."""
    asks = pool.agent(ASKS, tools=TOOLS, more=MORE)
    assert 3 == pool("run", "Go", "--agent", asks, "--inline", "--id", "one").exit_code
    works = pool.agent(WORKS, tools=TOOLS, more=MORE)
    pool.start("run", "Go", "--agent", works, "--inline", "--id", "two")
    pool.wait_for("two", "ToolStarted")
    pool.start("run", "Go", "--agent", works, "--inline", "--id", "three")
    pool.wait_for("three", "SessionWaiting")
    return pool


def test_the_sandboxes_are_listed_with_the_slots_and_the_queue(busy):
    slots, head, one, two, queue, three = busy("sandboxes").stdout.splitlines()

    assert "slots: 1 of 1 used" == slots
    assert ["SANDBOX", "BACKEND", "IS", "FOR", "PLACE"] == head.split()
    assert ["one.1", "local", "stopped"] == one.split()[:3]
    assert ["two.1", "local", "started"] == two.split()[:3]
    assert (["QUEUE", "SESSION", "FOR"], ["1", "three"]) == (queue.split(), three.split()[:2])

    told = busy.json("sandboxes")
    assert (1, 1, ["one", "two"]) == (
        told["max_started"],
        told["used"],
        [each["session"] for each in told["sandboxes"]],
    )
    assert ["three"] == [each["session"] for each in told["queue"]]


def test_a_sandbox_that_could_not_be_made_is_listed_with_the_reason(pool):
    sandbox = 'sandbox = { backend = "local", image = "debian" }'
    more = MORE.replace('sandbox = "local"', sandbox)
    agent = pool.agent(WORKS, tools=TOOLS, more=more)
    assert 3 == pool("run", "Go", "--agent", agent, "--inline", "--id", "one").exit_code

    _, _, one, why = pool("sandboxes").stdout.splitlines()

    assert ["one.1", "local", "failed"] == one.split()[:3]
    assert why.startswith("one.1: create failed: ")
    assert "leave `image` out" in why


def test_a_log_without_sandboxes_says_how_an_agent_gets_one(finished):
    gives = '`sandbox = "local"` in an agent\'s file gives each session one'
    assert f"no sandboxes in .cueline/log.db; {gives}\n" == finished("sandboxes").stdout
    none = {"max_started": None, "used": 0, "sandboxes": [], "queue": []}
    assert none == json.loads(finished("sandboxes", "--json").stdout)
