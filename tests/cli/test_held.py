"""Commands whose changes wait for a yes, as the command line shows and decides them."""

import json

import pytest

from cueline.cli.failure import Exit
from cueline.isolation.ladder import overlays
from cueline.testing.wait import wait_until
from tests.cli.test_asking import asked
from tests.cli.test_mcp_servers import ENDS, calls
from tests.cli.test_undo import undone

pytestmark = pytest.mark.skipif(not overlays().program, reason=overlays().cause)
HELD = '[tool_settings.run_command]\nchanges = "held"\n'


@pytest.fixture(autouse=True)
def place(shell, monkeypatch):
    """Hold changes in a folder of this test's own."""
    monkeypatch.setenv("XDG_STATE_HOME", str(shell.folder / "state"))
    monkeypatch.setenv("CUELINE_KEYS_FOLDER", str(shell.folder / "keys"))


@pytest.fixture
def agent(shell):
    def make(*commands, more=HELD):
        replies = "".join(calls("run_command", command=command) for command in commands)
        return shell.agent(replies + ENDS, tools=("run_command",), more=more)

    return make


def made(shell):
    return sorted(each.name for each in (shell.folder / "work").iterdir())


def test_what_a_command_would_change_is_shown_before_a_person_decides(shell, agent):
    waits = shell("run", "--agent", agent("ls", "echo hello > a; exit 3"), "--id", "one", "Go.")

    assert waits.exit_code == Exit.WAITING
    assert "? run_command would change a" in waits.output
    assert [] == made(shell)
    (question,) = json.loads(shell("pending", "--json").output)
    for text in ("[exit status 3]", "new a: 5891b5b522d5 (644)", "+++ b/a", "+hello"):
        assert text in question["preview"]
    assert "granted" in shell("approve", "one.2.0.1").output
    ended = shell("resume", "one", "--inline")
    assert 0 == ended.exit_code, ended.output
    assert ["a"] == made(shell)
    assert "+hello" in shell("show", "one", "--diff").output
    assert 0 == shell("replay", "one", "--check").exit_code


def test_a_no_changes_nothing(shell, agent):
    shell("run", "--agent", agent("echo hello > a"), "--id", "one", "Go.")
    shell("deny", "one.1.0.1", "--reason", "not this")
    ended = shell("resume", "one", "--inline")

    assert "Action rejected by human operator: not this" in ended.output
    assert [] == made(shell)


def test_what_is_allowed_is_written_and_can_be_undone(shell, agent):
    off = '[policy]\napproval = "off"\n'
    ran = shell("run", "--agent", agent("echo hello > a", more=HELD + off), "--id", "one", "Go.")
    assert 0 == ran.exit_code, ran.output
    assert ["a"] == made(shell)

    undone(shell, "one")

    assert [] == made(shell)


def test_a_process_that_is_killed_in_the_command_has_changed_nothing(shell, agent):
    """No call of the two is in doubt, though nothing is declared of the tool."""
    gate = shell.folder / "gates/open"
    gate.parent.mkdir()
    command = f"echo hello > a; until [ -e {gate} ]; do sleep 0.1; done"
    isolation = f"[isolation]\nread = [{json.dumps(str(gate.parent))}]\n"
    process = shell.start(
        "run", "--agent", agent(command, more=HELD + isolation), "--id", "one", "Go."
    )
    wait_until(lambda: shell.log.exists() and "ToolStarted" in shell.types("one"))
    process.kill()
    process.wait()
    assert [] == made(shell)
    gate.touch()

    waits = shell("resume", "one", "--inline")

    assert waits.exit_code == Exit.WAITING, waits.output
    assert ["one.1.0.1"] == asked(shell)
    assert "ToolInDoubt" not in shell.types("one")


def test_the_answer_comes_after_the_process_that_asked_was_killed(shell, agent):
    process = shell.start("run", "--agent", agent("echo hello > a"), "--id", "one", "Go.")
    wait_until(lambda: shell.log.exists() and asked(shell))
    process.kill()
    process.wait()

    shell("approve", "one.1.0.1")
    ended = shell("resume", "one", "--inline")

    assert 0 == ended.exit_code, ended.output
    assert ["a"] == made(shell)


def test_an_agent_whose_commands_have_other_effects_does_not_start(shell, agent):
    network = "[isolation]\nnetwork = true\n"
    refused = shell("run", "--agent", agent("ls", more=HELD + network), "--id", "one", "Go.")

    assert refused.exit_code == Exit.REFUSED, refused.output
    assert "`network` and `write` out of `isolation`" in refused.output


def test_only_commands_can_be_held(shell):
    held = '[tool_settings.read_file]\nchanges = "held"\n'
    refused = shell("run", "--agent", shell.agent(ENDS, tools=("read_file",), more=held), "Go.")

    assert refused.exit_code == Exit.REFUSED
    assert "the tool 'read_file' runs no isolated command: leave it out" in refused.output


def test_the_list_of_tools_says_that_changes_are_held_and_by_what(shell, agent):
    (row,) = shell.json("tools", "--agent", agent("ls"))

    assert "idempotent" == row["declared"]
    assert f"isolated by bubblewrap {overlays().version}" in row["runs"]
    assert row["runs"].endswith(", its changes held")
