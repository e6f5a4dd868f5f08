"""`cueline run --inline`: what is shown, and how it ends."""

import json
import subprocess

import pytest

from tests.cli.conftest import CUELINE


def test_a_run_shows_replies_calls_results_and_costs(shell):
    agent = shell.agent(shell.two_turns, tools=("list_files",))
    (shell.folder / "work" / "guests.txt").touch()

    done = shell("run", "Look around", "--agent", agent, "--inline", "--id", "one")

    assert done.exit_code == 0
    told = [line for line in done.stdout.splitlines() if line]
    assert told[:3] == [
        "session one · clerk · scripted script.toml",
        "you: Look around",
        "I will look.",
    ]
    assert told[3].startswith("  turn 1 · 100 in + 20 out tokens · $0")
    assert told[4] == "▸ 1.0 list_files"
    assert told[5].startswith("✓ 1.0 list_files · ")
    assert "guests.txt" in told[6]
    assert told[7] == "There is nothing."
    assert told[9] == "completed"
    assert told[10].startswith(
        "session one: completed · 2 turns · 1 tool call · 250 in + 30 out tokens · $0 · "
    )


def test_a_run_ends_with_one_document_for_programs(shell):
    """000-032."""
    agent = shell.agent(shell.two_turns, tools=("list_files",))

    document = shell.json("run", "Look", "--agent", agent, "--inline", "--id", "one")

    assert document == {
        "id": "one",
        "status": "completed",
        "result": "There is nothing.",
        "value": None,
        "partial": False,
        "error": None,
        "waiting": None,
        "turns": 2,
        "tool_calls": 1,
        "tokens": {"input": 250, "output": 30, "cache_read": 0, "cache_write": 0},
        "cost": "0",
        "version": document["version"],
    }


LOUD = """
import subprocess
from cueline import tool

print("imported")

@tool
async def loud() -> str:
    print("printed")
    subprocess.run(["echo", "started"])
    return "done"

@tool
def quiet() -> str:
    print("in a worker")
    return "done"
"""


@pytest.mark.parametrize("option", ["--json", "--json-stream"])
def test_what_tools_print_is_not_in_what_programs_read(shell, option):
    (shell.folder / "loud.py").write_text(LOUD)
    calls = '{ name = "loud", arguments = {} }, { name = "quiet", arguments = {} }'
    script = f'[[reply]]\ntext = "Go."\ncalls = [{calls}]\n[[reply]]\ntext = "Done."\n'
    agent = shell.agent(script, tools=("loud.py:loud", "loud.py:quiet"))

    words = ["run", "Go", "--agent", agent, "--inline", option]
    done = subprocess.run([*CUELINE, *words], capture_output=True, cwd=shell.folder, check=True)

    documents = [done.stdout] if option == "--json" else done.stdout.splitlines()
    assert "completed" == [json.loads(each) for each in documents][-1]["status"]
    assert {b"imported", b"printed", b"started"} <= set(done.stderr.splitlines())


def test_the_document_of_a_run_that_failed_says_why(shell):
    agent = shell.agent('[[reply]]\nfail = { kind = "refused", message = "no such thing" }\n')

    document = shell.json("run", "Hi", "--agent", agent, "--inline", "--id", "one")

    assert ("failed", "refused") == (document["status"], document["error"]["kind"])
    assert "no such thing" in document["error"]["message"]
    assert shell.json("export", "one")["error"] == document["error"]


def test_the_id_shown_is_the_id_recorded(shell):
    """D3: one id from end to end."""
    document = shell.json("run", "Hi", "--agent", shell.agent(shell.hello), "--inline")

    assert "SessionCompleted" in shell.types(document["id"])
    assert shell.json("list")[0]["id"] == document["id"]


def test_a_limit_of_turns_pauses_and_says_where_it_came_from(shell):
    agent = shell.agent(shell.two_turns, tools=("list_files",))

    done = shell("run", "Hi", "--agent", agent, "--inline", "--id", "one", "--max-turns", "1")

    assert done.exit_code == 3
    assert "session one: paused" in done.stdout
    limits = shell.json("export", "one")["limits"]
    assert (limits["max_turns"], limits["sources"]) == (1, {"max_turns": "flag --max-turns"})


def test_an_open_session_stays_for_more_messages(shell):
    script = f'{shell.hello}\n[[reply]]\ntext = "Still here."\n'
    agent = shell.agent(script)

    first = shell("run", "Hi", "--agent", agent, "--inline", "--id", "one", "--open")
    sent = shell("send", "one", "And now?")
    second = shell("resume", "one", "--inline")

    assert (0, 0, 0) == (first.exit_code, sent.exit_code, second.exit_code)
    assert "session one: idle" in first.stdout
    assert "cueline send one TEXT" in first.stdout
    assert "you: And now?\nStill here.\n" in second.stdout


def test_a_session_that_cannot_go_on_fails(shell):
    agent = shell.agent('[[reply]]\nfail = { kind = "invalid_request", message = "no" }\n')

    done = shell("run", "Hi", "--agent", agent, "--inline", "--id", "one")

    assert done.exit_code == 1
    assert "session one: failed" in done.stdout


def test_what_an_agent_says_cannot_steer_the_terminal(shell):
    agent = shell.agent('[[reply]]\ntext = "\\u001b[2Jboo \\u202etxt.exe"\n')

    done = shell("run", "Hi", "--agent", agent, "--inline")

    assert "\x1b" not in done.stdout
    assert "\\x1b[2Jboo \\x202etxt.exe" in done.stdout


def test_no_secret_is_recorded_or_shown(shell, monkeypatch):
    monkeypatch.setenv("TEA_TOKEN", "oolong-4711-jasmine")
    agent = shell.agent(shell.hello, more='secrets = ["TEA_TOKEN"]\n')

    done = shell("run", "Use oolong-4711-jasmine", "--agent", agent, "--inline", "--id", "one")

    assert done.exit_code == 0
    assert "oolong" not in done.output
    assert b"oolong" not in shell.log.read_bytes()
    assert "you: Use [redacted]" in done.stdout


def test_the_goal_can_be_piped_in(shell):
    agent = shell.agent(shell.hello)

    done = shell("run", "-", "--agent", agent, "--inline", typed="Read this\n")

    assert "you: Read this\n" in done.stdout


@pytest.mark.parametrize(
    "path", ["cueline.toml", "agent.toml", ".git/hooks/pre-commit", ".github/workflows/ci.yml"]
)
def test_writing_what_a_later_start_reads_is_asked_though_the_policy_asks_nothing(shell, path):
    script = OVERWRITES.replace(".cueline/log.db", path)
    agent = shell.agent(script, tools=("write_file",), more='[policy]\napproval = "off"\n')

    done = shell("run", "Hi", "--agent", agent, "--inline", "--workspace", ".", "--id", "one")
    (waiting,) = shell.json("pending")

    assert 3 == done.exit_code, done.output
    assert ("write_file", "read at a start") == (waiting["tool"], waiting["rule"])


OVERWRITES = """
[[reply]]
calls = [{ name = "write_file", arguments = { path = ".cueline/log.db", content = "x" } }]

[[reply]]
text = "Done."
"""


def test_a_file_tool_does_not_write_over_the_log(shell):
    agent = shell.agent(OVERWRITES, tools=("write_file",))

    done = shell("run", "Hi", "--agent", agent, "--inline", "--workspace", ".", "--id", "one")

    assert done.exit_code == 0, done.output
    assert "ToolFailed" in shell.types("one")
    assert shell("audit", "verify").exit_code == 0


@pytest.mark.parametrize("log", ["notes.db", "link.db"])
def test_a_log_that_file_tools_can_reach_is_refused(shell, log, tmp_path_factory):
    agent = shell.agent(shell.hello)
    (shell.folder / "link.db").symlink_to(tmp_path_factory.mktemp("away") / "log.db")
    words = ["run", "Hi", "--agent", agent, "--inline", "--workspace", "."]

    done = shell(*words, "--log", log)

    assert done.exit_code == 2
    assert f"error: {log}: the log is inside the workspace {shell.folder}" in done.stderr
    assert not (shell.folder / log).exists()


COMMANDS = """
[[reply]]
calls = [{ name = "run_command", arguments = { command = "ls" } }]
"""


def test_pending_says_of_a_call_that_it_can_reach_the_log(shell):
    more = f'isolation = "none"\n{shell.reachable}'
    agent = shell.agent(COMMANDS, tools=("run_command",), more=more)
    shell("run", "Hi", "--agent", agent, "--inline", "--workspace", ".", "--id", "one")

    told = shell("pending").stdout

    assert "one.1.0.1: This call can read, change or delete the log" in told


def test_labels_are_listed(shell):
    words = ["--label", "team=search", "--label", "day=mon"]
    shell("run", "Hi", "--agent", shell.agent(shell.hello), "--inline", *words)

    assert {"team": "search", "day": "mon"} == shell.json("list")[0]["labels"]


def test_a_detached_run_is_recorded_and_says_what_is_missing(shell):
    agent = shell.agent(shell.hello)

    done = shell("run", "Hi", "--agent", agent, "--detach", "--id", "one")

    assert (0, "one\n") == (done.exit_code, done.stdout)
    assert "nothing runs that would take it up: `cueline up`" in done.stderr
    assert "created" == shell.json("list")[0]["status"]
    assert json.loads(shell("run", "Hi", "--agent", agent, "--detach", "--json").stdout)["session"]


def test_a_detached_session_can_be_driven_later(shell):
    shell("run", "Hi", "--agent", shell.agent(shell.hello), "--detach", "--id", "one")

    done = shell("resume", "one", "--inline")

    assert done.exit_code == 0
    assert "Good evening." in done.stdout
