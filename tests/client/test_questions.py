"""Each question gives the same from Python and from the command line."""

import asyncio
import json
from datetime import UTC, datetime

import pytest

from cueline.client.client import open_client
from cueline.client.open_reader import open_reader
from cueline.runtime import loop

LONG_AGO = datetime(2020, 1, 1, tzinfo=UTC)


@pytest.mark.parametrize(
    ("asked", "words"),
    [
        ({}, []),
        ({"status": "completed"}, ["--status", "completed"]),
        ({"status": "paused"}, ["--status", "paused"]),
        ({"agent": "nobody"}, ["--agent", "nobody"]),
        ({"since": LONG_AGO}, ["--since", "2020-01-01T00:00:00+00:00"]),
        ({"labels": {"team": "red"}}, ["--label", "team=red"]),
        ({"limit": 1}, ["--limit", "1"]),
        ({"status": "dead"}, ["--status", "dead"]),
    ],
)
def test_the_sessions(both, asked, words):
    agent = both.shell.agent(both.shell.hello)
    both.shell("run", "Hi", "--agent", agent, "--detach", "--id", "two", "--label", "team=red")

    told = both(lambda client: client.sessions(**asked), "list", *words)

    ids = told if isinstance(told, str) else [each["id"] for each in told]
    assert (
        ids
        == {
            "": ["two", "one"],
            "--status completed": ["one"],
            "--status paused": [],
            "--agent nobody": [],
            "--since 2020-01-01T00:00:00+00:00": ["two", "one"],
            "--label team=red": ["two"],
            "--limit 1": ["two"],
            "--status dead": "error: status: 'dead' is no status; known are created, running, "
            "idle, waiting, paused, stopping, completed, failed, stopped",
        }[" ".join(words)]
    )


def test_a_session_that_waits_for_a_person_to_go_on_is_paused(both):
    agent = both.shell.agent(both.shell.two_turns, tools=("list_files",))
    both.shell("run", "Hi", "--agent", agent, "--inline", "--id", "two", "--max-turns", "1")

    (paused,) = both(lambda client: client.sessions(status="paused"), "list", "--status", "paused")

    assert ("two", "paused", "operator") == (paused["id"], paused["status"], paused["wait_kind"])


def test_there_are_no_sessions_before_the_first_run(shell):
    async def ask():
        async with open_reader(shell.log, must_exist=False) as reader:
            return list(await reader.sessions())

    assert [] == loop.run(ask())
    assert [] == shell.json("list")
    assert "`cueline run` starts one" in shell("list").stdout
    assert not shell.log.parent.exists()


def test_what_waits_for_a_decision(both_asking):
    (asked,) = both_asking(lambda client: client.pending(), "pending")

    assert ("one.1.0.1", "one", "may_it_run") == (asked["id"], asked["session"], asked["question"])
    assert {"path": "list.txt"} == asked["arguments"]


@pytest.mark.parametrize("by", ["session", "agent", "model", "day", "tree"])
def test_the_costs(both, by):
    told = both(lambda client: client.costs(by), "costs", "--by", by)

    assert (by, 1, 250) == (told["by"], len(told["rows"]), told["total"]["sent_tokens"])


@pytest.mark.parametrize(
    ("asked", "words"),
    [
        ({"session": "on"}, ["--session", "on"]),
        ({"session": "nine"}, ["--session", "nine"]),
        ({"since": "2026-13-01"}, ["--since", "2026-13-01"]),
        ({"until": "2020-01-01"}, ["--until", "2020-01-01"]),
    ],
)
def test_some_of_the_costs(both, asked, words):
    told = both(lambda client: client.costs(**asked), "costs", *words)

    name = next(iter(asked.values()))
    expected = {
        "on": 1,
        "nine": "error: nine: there is no such session in .cueline/log.db",
        "2026-13-01": "error: since: '2026-13-01' is no day like 2026-01-31",
        "2020-01-01": 0,
    }
    assert expected[name] == (told if isinstance(told, str) else len(told["rows"]))


def test_the_newest_events(both):
    told = both(lambda client: client.audit(limit=2), "audit", "--limit", "2")

    assert "SessionCompleted" == told[-1]["type"]
    assert told[0]["position"] + 1 == told[1]["position"]


@pytest.mark.parametrize(
    ("asked", "words"),
    [
        ({"session": "one"}, ["--session", "one"]),
        ({"tool": "list_files"}, ["--tool", "list_files"]),
        ({"actor": "agent"}, ["--actor", "agent"]),
        ({"type": "ToolStarted"}, ["--type", "ToolStarted"]),
        ({"type": "ToolStart"}, ["--type", "ToolStart"]),
        ({"text": "list_files"}, ["--text", "list_files"]),
        ({"after": 2, "type": "ToolStarted"}, ["--type", "ToolStarted"]),
        ({"since": LONG_AGO}, ["--since", "2020-01-01T00:00:00+00:00"]),
    ],
)
def test_some_of_the_events(both, asked, words):
    told = both(lambda client: client.audit(**asked), "audit", *words)

    wrong = "error: type: there is no event 'ToolStart': did you mean 'ToolStarted'?"
    assert told
    assert ("ToolStart" in words) == str(told).startswith(wrong)


def test_the_breakers(both):
    script = '[[reply]]\nfail = { kind = "overloaded", message = "no room" }\n'
    agent = both.shell.agent(script, more="[retry]\nmax_retries = 0\n[breaker]\nthreshold = 1\n")
    both.shell("run", "Hi", "--agent", agent, "--inline", "--id", "two")

    told = both(lambda client: client.breakers(), "breakers")

    assert [("open", "overloaded")] == [(each["state"], each["kind"]) for each in told]


@pytest.mark.parametrize("name", ["one", "o", "session-default/one"])
def test_one_session(both, name):
    told = both(lambda client: client.show(name), "show", name)

    assert ("one", "completed", 2) == (told["id"], told["status"], told["turns"])
    assert (None, [], 0) == (told["driver"], told["questions"], told["descendants"])


@pytest.mark.parametrize("command", ["show", "export", "budget show", "replay --check"])
def test_a_session_that_is_not_there(both, command):
    question = {
        "show": lambda client: client.show("nine"),
        "export": lambda client: client.export("nine"),
        "budget show": lambda client: client.budget("nine"),
        "replay --check": lambda client: client.check("nine"),
    }[command]

    told = both(question, *command.split(), "nine")

    assert "error: nine: there is no such session in .cueline/log.db" == told


def test_an_export(both):
    told = both(lambda client: client.export("one"), "export", "one")

    (call,) = told["tool_calls"]
    assert ("completed", "returned") == (told["status"], call["status"])
    assert 250 == told["metrics"]["tokens"]["input"]


def test_a_budget(both):
    told = both(lambda client: client.budget("one"), "budget", "show", "one")

    assert {"max_turns": "2"} == {
        each["limit"]: each["used"] for each in told["rows"] if each["limit"] == "max_turns"
    }


@pytest.mark.parametrize(("until", "words"), [(None, []), (3, ["--to", "3"]), (99, ["--to", "99"])])
def test_deciding_again(both, until, words):
    told = both(lambda client: client.check("one", until=until), "replay", "one", "--check", *words)

    if until == 99:
        assert told.startswith("error: one: there is no version 99; its last is ")
    else:
        assert (until or told["version"], None) == (told["version"], told["difference"])


def test_the_chains(both):
    intact = both(lambda client: client.verify(), "audit", "verify")
    both.shell.change("UPDATE events SET payload = x'7b7d' WHERE version = 3")
    damaged = both(lambda client: client.verify(), "audit", "verify")

    assert [] == intact["bad"]
    assert [("session-default/one", 3)] == [(e["stream"], e["version"]) for e in damaged["bad"]]


def test_a_session_that_cannot_be_read_to_its_end(both):
    both.shell.change("UPDATE events SET payload = x'7b7d' WHERE version = 5")

    told = both.python(lambda client: client.export("one"))

    assert told.startswith("error: session-default/one@5")
    typed = both.shell("export", "one")
    assert 1 == typed.exit_code
    assert told == typed.stderr.splitlines()[0]
    assert 4 == json.loads(typed.stdout)["version"]


async def test_a_transcript(finished):
    async with open_reader(".cueline/log.db") as client:
        lines = await client.transcript("one")

    assert ["user", "assistant", "call", "result", "assistant", "end"] == [e.kind for e in lines]


def test_what_drives_the_sessions(both):
    told = both(lambda client: client.status(), "status")

    assert (None, [], 0, 0) == (told["up"], told["processes"], told["driven"], told["undriven"])


@pytest.mark.parametrize(
    ("policy", "answers"),
    [
        ('approval = "off"\n', ["allow"]),
        ('[[rules]]\nname = "none"\ntools = ["list_files"]\nanswer = "deny"\n', ["deny"]),
        ("approvall = 1\n", None),
    ],
)
def test_another_policy_on_the_past(both, policy, answers):
    (both.shell.folder / "other.toml").write_text(policy)

    typed = both.typed("policy", "backtest", "other.toml")
    python = both.python(lambda client: client.backtest("other.toml"))

    if answers is None:
        assert typed == python
        assert typed.startswith("error: other.toml: key 'approvall'")
    else:
        assert typed == python["sums"]
        assert answers == [each["answer"] for each in typed]
        assert [("one", *answers)] == [(e["session"], e["answer"]) for e in python["calls"]]


def test_a_run_is_streamed_fact_by_fact(shell):
    agent = shell.agent(shell.hello)

    done = shell("run", "Hi", "--agent", agent, "--inline", "--id", "two", "--json-stream")

    *facts, last = map(json.loads, done.stdout.splitlines())
    assert shell.types("two") == [each["type"] for each in facts]
    assert ("two", "completed", "Good evening.") == (last["id"], last["status"], last["result"])


async def test_who_watches_the_list_is_told_when_something_happens(asking):
    async with open_reader(".cueline/log.db") as reader, open_client(".cueline/log.db") as client:
        changes = reader.changes()
        before = await anext(changes)
        later = asyncio.ensure_future(anext(changes))
        await client.send("one", "Hurry")

        assert before < await asyncio.wait_for(later, 10)
        assert 1 == (await reader.sessions())[0].unread
