"""Each wish, at the command line and in Python: one outcome, one error."""

import asyncio
import shutil

import pytest

from cueline.agents.agent import Agent
from cueline.client.client import open_client
from cueline.errors import (
    ConfigError,
    NotPendingError,
    RejectedError,
    SessionFinishedError,
    UnknownSessionError,
)
from cueline.events.agent import ModelChoice
from cueline.events.journal import FactWrite
from cueline.events.store import ANY
from tests.client.twice import begin

ASKED = "one.1.0.1"
NEXT = "one.2.0.1"
SCRIPTED = Agent(
    name="a", provider="scripted", model="s", parameters={"script": 'reply = [{ text = "Hi" }]'}
)


def test_a_message_is_sent(twice):
    said = twice("send", "one", "Hi", "--steer", wish=lambda c: c.send("one", "Hi", "steer"))

    assert ("one", "MessageSent", True, 2) == (
        said["session"],
        said["message"],
        said["recorded"],
        said["version"],
    )
    assert "nobody" == said["read_by"]


def test_a_session_that_has_ended_takes_no_message(finished):
    error = begin(finished).refused("send", "one", "Hi", wish=lambda c: c.send("one", "Hi"))

    assert SessionFinishedError is type(error)


def test_a_session_that_is_not_there_takes_no_message(twice):
    typed = twice.shell("send", "nobody", "Hi")
    with pytest.raises(UnknownSessionError, match="nobody: there is no such session"):
        twice.in_python(lambda c: c.send("nobody", "Hi"))

    assert (2, True) == (typed.exit_code, "nobody: there is no such session" in typed.stderr)


def test_a_pause_is_asked_for_once(twice):
    first = twice("pause", "one", wish=lambda c: c.pause("one"))
    again = twice("pause", "one", wish=lambda c: c.pause("one"))

    assert (True, False, None) == (first["recorded"], again["recorded"], again["version"])


def test_limits_are_raised_and_not_lowered(twice):
    flags = ("budget", "raise", "one", "--max-turns")
    raised = twice(*flags, "90", wish=lambda c: c.raise_limits("one", max_turns=90))
    error = twice.refused(*flags, "2", wish=lambda c: c.raise_limits("one", max_turns=2))

    assert "RaiseAsked" == raised["message"]
    assert (RejectedError, "one") == (type(error), error.subject)


def test_a_session_that_nobody_drives_is_ended_here(twice):
    said = twice("stop", "one", "--reason", "enough", wish=lambda c: c.stop("one", "enough"))
    again = twice("stop", "one", wish=lambda c: c.stop("one"))

    assert ("stopped", "here", False) == (said["status"], said["read_by"], said["ended_before"])
    assert ("stopped", False, True) == (again["status"], again["recorded"], again["ended_before"])


def test_a_question_is_answered_by_its_id(twice):
    said = twice("approve", ASKED, "--note", "fine", wish=lambda c: c.approve(ASKED, note="fine"))
    again = twice("approve", ASKED, wish=lambda c: c.approve(ASKED))

    assert ("grant", ASKED, True) == (said["verdict"], said["approval"], said["recorded"])
    assert not again["recorded"]


def test_a_question_is_denied_by_its_id(twice):
    said = twice("deny", ASKED, "--reason", "no", wish=lambda c: c.deny(ASKED, note="no"))
    error = twice.refused("approve", ASKED, wish=lambda c: c.approve(ASKED))

    assert "deny" == said["verdict"]
    assert NotPendingError is type(error)


def test_a_session_is_started_from_a_file(shell):
    agent = shell.agent(shell.hello)

    typed = shell.json("run", "Hi", "--agent", agent, "--detach", "--id", "one")
    said = asyncio.run(start_in_python("other.db", agent, id="one"))

    assert typed == said
    assert {"session": "one", "message": "StartAsked", "read_by": "nobody"}.items() <= said.items()


async def start_in_python(log, agent, **wanted):
    async with open_client(log, must_exist=False) as client:
        return (await client.start(agent, "Hi", **wanted)).receipt.to_json()


def test_an_id_that_is_taken_starts_nothing(twice):
    agent = str(twice.shell.folder / "agent.toml")
    words = ("run", "Hi", "--agent", agent, "--id", "one", "--detach")

    error = twice.refused(*words, wish=lambda c: c.start(agent, "Hi", id="one"))

    assert (RejectedError, "one: a session with this id exists") == (type(error), str(error))


def test_a_session_that_has_ended_is_not_resumed(finished):
    error = begin(finished).refused("resume", "one", wish=lambda c: c.resume("one"))

    assert SessionFinishedError is type(error)


def test_a_session_is_forked(twice):
    async def fork(client):
        shutil.rmtree(twice.shell.folder / "work-two")  # the copy that the shell has made
        return (await client.fork("one", at=2, id="two")).receipt

    said = twice("fork", "one", "--at", "2", "--id", "two", "--detach", wish=fork)

    assert ("two", "StartAsked") == (said["session"], said["message"])


def test_a_version_that_there_is_not_is_not_forked(twice):
    words = ("fork", "one", "--at", "99", "--detach")

    error = twice.refused(*words, wish=lambda c: c.fork("one", at=99))

    assert RejectedError is type(error)
    assert "there is no version 99; its last is " in str(error)


@pytest.mark.parametrize("verb", ["approve", "deny"])
def test_what_nobody_asks_is_not_answered(twice, verb):
    error = twice.refused(verb, "one.7.0.1", wish=lambda c: getattr(c, verb)("one.7.0.1"))

    assert (NotPendingError, "one.7.0.1") == (type(error), error.subject)


# C17
def test_who_may_not_allow_a_call_is_rejected(shell, monkeypatch):
    rule = '[[policy.rules]]\nname = "two"\nanswer = "ask"\nmay_grant = ["ann"]\n'
    agent = shell.agent(shell.deletes, tools=("delete_file",), more=shell.reachable + rule)
    (shell.folder / "work" / "list.txt").write_text("Ada\n")
    shell("run", "Tidy up", "--agent", agent, "--inline", "--id", "one")
    monkeypatch.setenv("LOGNAME", "eve")

    error = begin(shell).refused("approve", ASKED, wish=lambda c: c.approve(ASKED))

    assert RejectedError is type(error)
    assert "eve may not allow it; ann may" == error.reason


def test_a_question_that_only_the_gate_has_recorded_takes_a_decision(twice):
    async def ask_again(client):
        journal = client.log.journal()
        ((_, opened),) = [each async for each in journal.read(f"approval-default/{ASKED}")]
        await journal.append([FactWrite(f"approval-default/{NEXT}", [[opened]], ANY)], "again")
        return await client.approve(NEXT)

    receipt = twice.in_python(ask_again)

    assert (NEXT, "grant", True) == (receipt.approval, receipt.verdict, receipt.recorded)


def test_a_model_without_a_provider_keeps_no_other_setting(twice):
    choice = ModelChoice(provider="", model="m2", parameters={"temperature": 0})

    with pytest.raises(ConfigError):
        twice.in_python(lambda client: client.session("one").switch_model(choice))


def test_an_edit_that_does_not_fit_is_refused(twice):
    error = twice.refused(
        "approve", ASKED, "--edit", "path=7", wish=lambda c: c.approve(ASKED, edit={"path": 7})
    )

    assert ConfigError is type(error)


@pytest.mark.parametrize(
    ("wish", "names"),
    [
        (lambda c: c.send("one", 7), "text: 7 is no text"),
        (lambda c: c.send(7, "Hi"), "session: 7 is no text; an id is text, such as '7f3a'"),
        (lambda c: c.send("one", "Hi", "shout"), "lane: 'shout' is none of"),
        (lambda c: c.stop("one", None), "reason: "),
        (lambda c: c.raise_limits("one", max_turns="many"), "max_turns: 'many' is no whole number"),
        (lambda c: c.raise_limits("one", turns=7), "turns: it is unknown"),
        (lambda c: c.start(7), "agent: 7 is neither an Agent nor the path of an agent file"),
        (lambda c: c.start("agent.toml", output=7), "output: 7 is neither a pydantic model nor"),
        (lambda c: c.start(SCRIPTED, "Hi", labels=7), "labels: 7 is no table"),
        (lambda c: c.sessions(limit="2"), "limit: '2' is no number of rows"),
        (lambda c: c.costs(limit=0), "limit: 0 is no number of rows"),
        (lambda c: c.fork("one", at="2"), "at: '2' is no version"),
        (lambda c: c.approve(7), "approval: 7 is neither the id of an approval"),
        (lambda c: c.approve(ASKED, note=7), "note: 7 is no text"),
    ],
)
def test_a_value_of_another_type_is_our_error(twice, wish, names):
    with pytest.raises(ConfigError) as refused:
        twice.in_python(wish)

    assert str(refused.value).startswith(names)


def test_an_error_has_a_form_in_json(twice):
    with pytest.raises(NotPendingError) as refused:
        twice.in_python(lambda c: c.deny("one.7.0.1"))

    told = refused.value.to_json()
    assert ("NotPendingError", "one.7.0.1", False) == (
        told["error"],
        told["subject"],
        told["retryable"],
    )
    assert str(refused.value) == told["message"]
