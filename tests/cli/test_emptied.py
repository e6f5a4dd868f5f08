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
    ("audit", "verify"),
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
    assert "what it was to do was emptied" in shown
    assert "resume" not in shown


@pytest.mark.parametrize("command", CHANGING, ids=" ".join)
def test_what_lost_its_beginning_is_not_gone_on_with(asking, command):
    """I5: begun anew it would do again what it has done."""
    empty(asking, "SessionStarted")
    before = asking.types("one")

    done = asking(*command)

    assert done.exit_code == 2
    assert "error: one: what it was to do was emptied" in done.stderr
    assert before == asking.types("one")


@pytest.mark.parametrize("word", [["send", "one", "Hi"], ["stop", "one"], ["resume", "one"]])
def test_nothing_is_said_to_a_session_whose_wish_was_emptied(asking, word):
    empty(asking, "StartAsked")

    done = asking(*word)

    assert done.exit_code == 1
    assert "error: inbox-default/one@1 (position 1): what it was to do was emptied" in done.stderr
