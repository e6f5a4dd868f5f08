"""`cueline stop`, where somebody drives the session and where nobody does."""

import json
import shutil

import pytest

from cueline.events.inbox import StopAsked
from cueline.runtime.loop import run
from cueline.runtime.open_log import open_log
from tests.cli.test_doubt import SENDER, SENDS

FAR = """name = "far"
provider = "anthropic"
model = "claude-opus-4-6"
workspace = "work"
tools = ["read_file"]
secrets = ["TEA_TOKEN"]
"""


def test_a_session_that_nobody_drives_ends_there_and_then_and_once(asking):
    first, after = asking("stop", "one"), asking("stop", "one")

    assert ("one: stopped\n", 0) == (first.stdout, first.exit_code), first.output
    assert ("one: it has ended already: stopped\n", 0) == (after.stdout, after.exit_code)
    assert ["ApprovalResolved", "SessionStopped"] == asking.types("one")[-2:]
    assert [] == asking.json("pending")


def host_dies(shell):
    sender = SENDER.replace("HOST", 'int(Path("host.pid").read_text())')
    (shell.folder / "sender.py").write_text(sender)
    agent = shell.agent(SENDS, tools=("sender.py:send",))
    (shell.folder / "host.pid").write_text("0")
    process = shell.start("run", "Write", "--agent", agent, "--inline", "--id", "one")
    (shell.folder / "host.pid").write_text(str(process.pid))
    process.wait(60)
    (shell.folder / "sender.py").unlink()
    shutil.rmtree(shell.folder / "work")


@pytest.fixture
def cut_off(begin):
    """A session whose host died under a call, on a machine where nothing of it is left."""
    return begin(host_dies)


# I5: it ends, and nobody is told that its call did not run.
def test_a_call_that_was_cut_off_is_named_when_its_session_is_ended(cut_off):
    done = cut_off("stop", "one")

    assert 0 == done.exit_code, done.output
    assert "one: stopped\n? 1.0 send is in doubt: it may or may not have run\n" == done.stdout
    assert "ToolInDoubt" in cut_off.types("one")
    assert "stopped" == cut_off.json("list")[0]["status"]


def test_a_program_learns_which_calls_are_in_doubt(cut_off):
    document = json.loads(cut_off("stop", "one", "--json").stdout)

    assert ({"1.0": "send"}, "stopped", "here") == (
        document["in_doubt"],
        document["status"],
        document["read_by"],
    )


def test_what_never_began_is_ended_without_its_key_secret_or_workspace(shell, monkeypatch):
    (shell.folder / "far.toml").write_text(FAR)
    (shell.folder / "work").mkdir()
    monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-ant-not-a-key")
    monkeypatch.setenv("TEA_TOKEN", "oolong-4711-jasmine")
    asked = shell("run", "Hi", "--agent", "far.toml", "--detach", "--id", "one")
    assert 0 == asked.exit_code, asked.output
    monkeypatch.delenv("ANTHROPIC_API_KEY")
    monkeypatch.delenv("TEA_TOKEN")
    (shell.folder / "work").rmdir()

    done = shell("stop", "one")

    assert ("one: stopped\n", 0) == (done.stdout, done.exit_code), done.output
    assert "ModelStarted" not in shell.types("one")


def asked_to_stop(shell, reason="Enough."):
    """Put the wish into its inbox as a process does that dies before it acts on it."""

    async def ask():
        async with open_log(shell.log) as log:
            await log.post("session-default/one", StopAsked(reason=reason), None)

    run(ask())


def test_what_was_asked_to_stop_before_is_ended(asking):
    asked_to_stop(asking)

    assert "one: stopped\n" == asking("stop", "one").stdout
    assert 1 == asking("audit", "--type", "StopAsked", "--json").stdout.count("\n")


# Nothing starts in it any more, so there is nothing to ask about.
def test_what_was_asked_to_stop_is_resumed_where_nobody_can_be_asked(shell):
    agent = shell.agent(shell.deletes, tools=("delete_file",), more=shell.reachable)
    (shell.folder / "work" / "list.txt").write_text("Ada\n")
    shell("run", "Tidy up", "--agent", agent, "--inline", "--id", "one")
    asked_to_stop(shell)
    (shell.folder / "work" / "list.txt").unlink()
    (shell.folder / "work").rmdir()

    done = shell("resume", "one", "--inline")

    assert 1 == done.exit_code, done.output
    assert "SessionStopped" == shell.types("one")[-1]


@pytest.mark.parametrize(
    "words",
    [("send", "one", "More"), ("pause", "one"), ("approve", "one.1.0.1"), ("deny", "one.1.0.1")],
)
def test_a_session_that_was_asked_to_stop_takes_no_more_messages(asking, words):
    asked_to_stop(asking)

    done = asking(*words)

    assert done.exit_code == 2
    assert "one: it was asked to stop, and takes no more messages" in done.stderr
