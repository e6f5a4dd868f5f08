"""What makes no sense is refused in a line that names it, and never with a traceback."""

import pytest

from cueline.cli import open_log

LONG = "x" * 5000
HUGE = "9" * 40


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["run", "Hi", "--agent", "agent.toml", "--workspace", LONG], "File name too long"),
        (["doctor", "--log", LONG], "File name too long"),
        (["status", "--log", LONG], "File name too long"),
        (["run", "Hi", "--agent", "agent.toml", "--id", ""], "an id is letters a-z and digits"),
        (["fork", "one", "--at", "2", "--id", ""], "an id is letters a-z and digits"),
        (["show", ""], "error: '': there is no such session"),
        (["approve", ""], "error: '': there is no such approval"),
        (["audit", "--session", ""], "error: '': there is no such session"),
        (["audit", "--log", "b.db", "verify"], "--log goes behind `verify`"),
        (["audit", "--json", "verify"], "--json goes behind `verify`"),
        (["up", "--hosts", HUGE], "is more than 1000"),
        (["up", "--runners", "1001"], "1001 is more than 1000"),
    ],
)
def test_what_was_typed_wrong_is_named(finished, words, said):
    done = finished(*words)

    assert done.exit_code == 2, done.output
    assert said in done.stderr
    assert "Traceback" not in done.output


def test_a_working_directory_that_was_removed_is_named(shell, tmp_path, monkeypatch):
    gone = tmp_path / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()

    done = shell("list")

    assert done.exit_code == 2
    assert "error: the working directory: it was removed; change to" in done.stderr


@pytest.mark.parametrize("command", ["list", "audit", "costs"])
def test_a_limit_may_be_larger_than_the_database_counts(finished, command):
    done = finished(command, "--limit", HUGE)

    assert done.exit_code == 0, done.output
    assert "one" in done.stdout


def test_a_bug_moves_no_cursor(shell, monkeypatch):
    def fail(work):
        work.close()
        raise RuntimeError("\x1b[2Jgone \u202etxt")

    monkeypatch.setattr(open_log, "run", fail)

    done = shell("list")

    assert done.exit_code == 1
    assert "Traceback" in done.stderr
    assert done.stderr.endswith("RuntimeError: \\x1b[2Jgone \\x202etxt\n\n")


def test_an_error_moves_no_cursor_and_is_not_endless(finished):
    named = finished("show", "\x1b]0;owned\x07\u202e")
    long = finished("show", LONG)

    assert named.stderr.startswith("error: \\x1b]0;owned\\x07\\x202e: there is no such session")
    assert len(long.stderr) < 500


def test_what_can_be_no_log_is_none_that_a_run_would_make(shell):
    (log,) = (
        each for each in shell.json("doctor", "--log", ":memory:") if each["subject"] == "log"
    )

    assert ("bad", True) == (log["verdict"], "name a path" in log["found"])
