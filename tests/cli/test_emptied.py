"""Sessions of which something was emptied: what is left of them can be looked at."""

import pytest

LOOKING = (
    ("show", "one"),
    ("show", "one", "--json"),
    ("tail", "one"),
    ("export", "one"),
    ("replay", "one"),
    ("budget", "show", "one"),
    ("list",),
    ("costs",),
    ("pending",),
)
CHANGING = (
    ("resume", "one", "--inline"),
    ("send", "one", "Hi"),
    ("approve", "one.1.0.1"),
    ("deny", "one.1.0.1"),
    ("fork", "one", "--at", "5", "--inline"),
)


def empty(shell, type_):
    shell.change("UPDATE events SET payload = NULL, salt = NULL WHERE type = ?", type_)


@pytest.mark.parametrize("command", LOOKING, ids=" ".join)
@pytest.mark.parametrize("type_", ["SessionStarted", "StartAsked", "ModelReplied"])
def test_what_was_not_emptied_is_shown(asking, type_, command):
    empty(asking, type_)

    done = asking(*command)

    assert (0, "") == (done.exit_code, done.stderr)


def test_a_session_that_lost_its_beginning_is_shown_as_one_that_cannot_go_on(asking):
    empty(asking, "SessionStarted")

    shown = asking("show", "one").stdout

    assert "version 1 was emptied" in shown
    assert "session-default/one@1 (position 2): it was emptied" in shown
    assert "resume" not in shown


def test_a_check_of_decisions_ends_at_what_was_emptied_and_says_so(asking):
    empty(asking, "ModelReplied")

    done = asking("replay", "one", "--check")

    assert 1 == done.exit_code
    assert "it was emptied: its session can be looked at" in done.stderr
    assert "differs" not in done.stdout


@pytest.mark.parametrize("type_", ["SessionStarted", "ModelReplied"])
@pytest.mark.parametrize("command", CHANGING, ids=" ".join)
def test_what_lost_a_fact_is_not_gone_on_with(asking, type_, command):
    """I5: without it the session would do again what it has done."""
    empty(asking, type_)
    before = asking.types("one")

    done = asking(*command)

    assert done.exit_code == 1
    assert "it was emptied: its session can be looked at, but not gone on with" in done.stderr
    assert before == asking.types("one")


@pytest.mark.parametrize("word", [["send", "one", "Hi"], ["stop", "one"], ["resume", "one"]])
def test_nothing_is_said_to_a_session_whose_wish_was_emptied(asking, word):
    empty(asking, "StartAsked")

    done = asking(*word)

    assert done.exit_code == 1
    assert "error: inbox-default/one@1 (position 1): it was emptied" in done.stderr


def test_verify_names_the_first_event_of_a_stream_that_was_emptied(asking):
    empty(asking, "ModelReplied")

    done = asking("audit", "verify")

    assert 1 == done.exit_code
    [told] = done.stdout.splitlines()
    assert told.startswith("session-default/one@")
    assert told.endswith(": it was emptied, and not by cueline")
