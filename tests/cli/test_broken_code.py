"""A cueline of which one function raises: what happened is recorded, and the commands say so."""

import pytest

from tests.broken_cueline import BrokenShell

FAILED = "a rule of cueline failed, what happened is recorded: TypeError: broken by a test"


@pytest.fixture
def broken(shell):
    return BrokenShell(shell.folder)


def test_a_rule_that_raises_pauses_the_run_and_a_mended_one_goes_on(broken, shell):
    broken.break_("deciders/session/derived_events.py", "_after_turn", "state.turn.calls")
    done = broken.run("--inline")

    assert (3, "") == (done.returncode, done.stderr)
    assert f"paused: error: {FAILED} (derived_events.py:" in done.stdout
    assert ["ToolReturned", "SessionWaiting"] == shell.types("one")[-2:]
    again = broken("resume", "one", "--inline")
    assert (3, True) == (again.returncode, FAILED in again.stdout)
    row = broken.row()
    assert ("paused", "rule_failed") == (row["status"], row["wait_cause"]["code"])
    assert FAILED in broken("show", "one").stdout

    broken.mend()
    done = broken("resume", "one", "--inline")

    assert (0, True) == (done.returncode, "Paid." in done.stdout)
    assert "paid\n" == broken.book.read_text()


def test_a_fold_that_raises_leaves_a_session_that_readers_see_paused(broken, shell):
    broken.break_("deciders/session/call.py", "call_closed")
    done = broken.run("--inline")

    assert (3, True) == (done.returncode, FAILED in done.stdout)
    assert "paused" == broken.row()["status"]
    assert FAILED in broken("show", "one").stdout
    again = broken("resume", "one", "--inline")
    assert "broken by a test" in again.stdout + again.stderr
    assert again.returncode in (1, 3)

    broken.mend()
    done = broken("resume", "one", "--inline")

    assert (0, "paid\n") == (done.returncode, broken.book.read_text())


def test_a_projection_that_raises_keeps_nothing_from_the_log_and_is_said(broken, shell):
    when = "fact.type == 'SessionCompleted'"
    broken.break_("projections/session_fold.py", "fold_session", when)
    done = broken.run("--inline")

    assert (0, "SessionCompleted") == (done.returncode, shell.types("one")[-1])
    listed = broken("list")
    assert (0, True) == (listed.returncode, "one" in listed.stdout)
    said = "warning: one@10 SessionCompleted could not be read (TypeError: broken by a test)"
    assert said in listed.stderr

    (shell.folder / ".cueline" / "log.db-views.db").unlink()
    broken.mend()

    assert ("completed", "") == (broken.row()["status"], broken("list").stderr)


@pytest.mark.parametrize(
    ("file", "function", "when"),
    [
        ("console/event_renderer.py", "_lines", "fact.type == 'ToolStarted'"),
        ("console/status_line.py", "learn", "fact.type == 'ToolStarted'"),
    ],
)
def test_a_renderer_that_raises_ends_no_run(broken, shell, file, function, when):
    broken.break_(file, function, when)
    done = broken.run("--inline")

    assert (0, "SessionCompleted") == (done.returncode, shell.types("one")[-1])
    said = "! ToolStarted is recorded, and cannot be shown: TypeError: broken by a test"
    assert said in done.stdout
    assert "Paid." in done.stdout


BUSY = """
from threading import Event

from cueline import tool


@tool
def pay() -> str:
    \"\"\"Pay once, and take a while.\"\"\"
    with open({paid!r}, "a") as book:
        book.write("paid\\n")
    Event().wait(1)
    return "receipt 7"
"""


def test_a_command_that_can_watch_no_more_lets_the_running_call_end(broken, shell):
    broken.break_("deciders/session/wait.py", "rests", "len(state.turn.awake) > 0")
    (shell.folder / "tool.py").write_text(BUSY.format(paid=str(broken.book)))
    done = broken.run("--inline")

    assert (1, True) == (done.returncode, "TypeError: broken by a test" in done.stderr)
    assert "ToolReturned" in shell.types("one")
    broken.mend()
    done = broken("resume", "one", "--inline")
    assert (0, "paid\n") == (done.returncode, broken.book.read_text())
    assert "takeover" not in done.stdout


def test_a_replay_names_the_step_in_which_a_rule_raises(broken):
    assert 0 == broken.run("--inline").returncode
    broken.break_("deciders/policy.py", "judge")

    done = broken("replay", "one", "--check")

    assert 1 == done.returncode
    assert "one@4: decided anew, this step differs" in done.stdout
    assert "decided:  TypeError: broken by a test" in done.stdout
