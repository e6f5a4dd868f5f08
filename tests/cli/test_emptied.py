"""Sessions of which something was emptied: what is left of them can be looked at."""

import asyncio
from datetime import UTC, datetime

import pytest

from cueline.actors.inbox import ask_start
from cueline.events.agent import AgentSpec
from cueline.events.inbox import StartAsked
from cueline.runtime.open_log import open_log

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
async def test_a_session_that_did_not_begin_is_told_nothing_if_its_request_was_emptied(shell, word):
    agent = AgentSpec(name="clerk", provider="scripted", model="script.toml")
    asked = StartAsked(agent=agent, goal="Hi", asked_at=datetime.now(UTC))
    async with open_log(shell.log) as log:
        await ask_start(log.journal(), "one", asked)
    empty(shell, "StartAsked")

    done = await asyncio.to_thread(shell, *word)

    assert done.exit_code == 1
    assert "error: inbox-default/one@1 (position 1): it was emptied" in done.stderr


def test_a_session_that_has_begun_goes_on_without_the_request_for_it(asking):
    empty(asking, "StartAsked")

    assert 0 == asking("approve", "one.1.0.1").exit_code
    assert 0 == asking("resume", "one", "--inline").exit_code
    assert "SessionCompleted" == asking.types("one")[-1]


def test_verify_names_the_first_event_of_a_stream_that_was_emptied(asking):
    empty(asking, "ModelReplied")

    done = asking("audit", "verify")

    assert 1 == done.exit_code
    told, _ = done.stdout.splitlines()
    assert told.startswith("session-default/one@")
    assert told.endswith(": it was emptied, and not by cueline")
