"""`list`, `tail`, `replay`, `export` and `audit`."""

import json
import os
import signal
from datetime import datetime

import pytest

from cueline.cli import open_log, replay, tail
from cueline.client import open_read_models
from cueline.console.text import date_time


def test_sessions_are_listed_by_what_is_asked(finished):
    """000-033."""
    finished("run", "Hi", "--agent", finished.agent(finished.hello), "--detach", "--id", "two")

    assert ["two", "one"] == [each["id"] for each in finished.json("list")]
    assert ["one"] == [each["id"] for each in finished.json("list", "--status", "completed")]
    assert [] == finished.json("list", "--agent", "nobody")
    assert ["two"] == [each["id"] for each in finished.json("list", "--limit", "1")]


@pytest.mark.parametrize("command", [["list"], ["audit"], ["audit", "--json"]])
def test_what_is_cut_short_says_so(finished, command):
    agent = finished.agent(finished.hello)
    finished("run", "Hi", "--agent", agent, "--detach", "--id", "two")

    cut = finished(*command, "--limit", "1")

    assert "there are more; --limit shows them\n" == cut.stderr
    assert "there are more" not in finished(*command).stderr


def test_the_list_is_a_table(finished):
    head, row = finished("list").stdout.splitlines()

    assert head.split() == ["SESSION", "STATUS", "AGENT", "CHANGED", "TURNS", "COST", "GOAL"]
    assert row.split()[:3] == ["one", "completed", "clerk"]
    assert row.endswith("Look around")


def test_a_status_that_does_not_exist_is_refused(finished):
    done = finished("list", "--status", "dead")

    assert done.exit_code == 2
    assert "known are created, running" in done.stderr


@pytest.mark.parametrize(
    "words",
    [
        ["show", "one"],
        ["tail", "one"],
        ["replay", "one"],
        ["export", "one"],
        ["resume", "one"],
        ["send", "one", "hi"],
        ["pause", "one"],
        ["stop", "one"],
        ["fork", "one", "--at", "1"],
        ["audit"],
        ["audit", "verify"],
        ["pending"],
        ["approve", "one.1.0.1"],
    ],
)
def test_a_log_that_is_not_there_is_not_made(shell, words):
    done = shell(*words)

    assert done.exit_code == 2
    assert "there is no log" in done.stderr
    assert "--log or CUELINE_LOG names one" in done.stderr
    assert not shell.log.exists()


@pytest.mark.parametrize(
    "words",
    [["show"], ["tail"], ["replay"], ["export"], ["resume"], ["pause"], ["stop"]],
)
def test_an_unknown_session_is_met_with_those_that_are_like_it(finished, words):
    done = finished(*words, "ome")

    assert done.exit_code == 2
    assert "ome: there is no such session in .cueline/log.db; did you mean one?" in done.stderr


def test_the_beginning_of_an_id_will_do(finished):
    agent = finished.agent(finished.hello)
    finished("run", "Hi", "--agent", agent, "--detach", "--id", "once")
    finished("run", "Hi", "--agent", agent, "--detach", "--id", "two")

    assert "two" == finished.json("show", "t")["id"]
    assert "one" == finished.json("show", "one")["id"]
    refused = finished("show", "on")
    assert refused.exit_code == 2
    assert "more than one session begins so: once, one" in refused.stderr


def test_the_log_is_chosen_by_the_environment_too(finished, monkeypatch):
    finished.log.rename(finished.folder / "other.db")
    monkeypatch.setenv("CUELINE_LOG", "other.db")

    assert "one" == finished.json("list")[0]["id"]


@pytest.mark.parametrize("words", [["list"], ["show", "one"]])
def test_a_board_that_cannot_be_read_is_not_taken_for_an_empty_one(finished, words):
    board = finished.log.with_name("log.db.presence")
    board.unlink(missing_ok=True)
    board.mkdir()

    done = finished(*words)

    assert done.exit_code == 0
    assert "whether anybody drives a session is not known\n" in done.stderr


def test_events_are_printed_one_a_line(finished):
    lines = finished("tail", "one", "-n", "2").stdout.splitlines()

    assert ["ModelReplied", "SessionCompleted"] == [line.split()[3] for line in lines]


def test_a_line_says_which_message_was_read(asking):
    asking("pause", "one")
    asking("send", "one", "And?")
    asking("resume", "one", "--inline")

    said = asking("tail", "one", "-n", "99").stdout

    assert " message=PauseAsked" in said
    assert ' message=MessageSent {"lane": "note", "text": "And?"}' in said


def test_following_ends_with_the_session(finished):
    done = finished("tail", "-f", "one", "--json", "-n", "1")

    assert done.exit_code == 0
    assert "SessionCompleted" == json.loads(done.stdout)["type"]


def test_state_is_rebuilt_up_to_a_version(finished):
    """000-032."""
    early = finished.json("replay", "one", "--to", "1")
    late = finished.json("replay", "one")

    assert (early["version"], early["status"]) == (1, "running")
    assert (late["status"], late["turn"]["number"]) == ("completed", 2)
    assert late["prompt_digests"]["digest"]
    assert late["prompt_digests"]["results"] == []


def test_a_version_that_is_not_there_is_refused(finished):
    done = finished("replay", "one", "--to", "99")

    assert done.exit_code == 2
    assert "there is no version 99; its last is " in done.stderr


def test_each_step_decided_again_gives_what_was_recorded(finished):
    """I10."""
    done = finished("replay", "one", "--check")

    assert done.exit_code == 0
    assert "steps decided again, each as recorded" in done.stdout


def test_a_session_is_exported_whole(finished):
    """000-032, 000-036 to 000-049, D2, D4: messages with their tool calls, none missing."""
    document = json.loads(finished("export", "one").stdout)

    roles = [message["role"] for message in document["messages"]]
    assert roles == ["user", "assistant", "tool", "assistant"]
    assert document["messages"][1]["calls"][0]["name"] == "list_files"
    assert document["tool_calls"][0]["status"] == "returned"
    assert document["metrics"]["tokens"]["input"] == 250
    assert document["metrics"]["turns"] == 2
    assert document["error"] is None
    assert document["started_at"] < document["updated_at"]
    assert (document["id"], document["status"]) == ("one", "completed")
    assert (document["provider"], document["agent"]) == ("scripted", "clerk")
    assert document["version"] == len(finished.types("one"))


def test_the_exported_conversation_ends_with_the_answer(finished):
    document = json.loads(finished("export", "one").stdout)

    assert document["messages"][-1]["content"][0]["text"] == "There is nothing."


def test_events_are_exported_as_lines(finished):
    lines = finished("export", "one", "--format", "events").stdout.splitlines()

    events = [json.loads(line) for line in lines]
    assert finished.types("one") == [event["type"] for event in events]
    assert list(range(1, len(events) + 1)) == [event["version"] for event in events]


@pytest.mark.parametrize(
    ("words", "module", "work"),
    [
        (["export"], tail, "export_of"),
        (["export", "--format", "events"], tail, "event_document"),
        (["replay", "--check"], replay, "check_of"),
    ],
)
def test_who_will_not_wait_may_interrupt(finished, monkeypatch, words, module, work):
    done = getattr(module, work)

    def interrupted(*args, **options):
        os.kill(os.getpid(), signal.SIGINT)
        return done(*args, **options)

    monkeypatch.setattr(module, work, interrupted)

    told = finished(*words, "one")

    assert (130, "") == (told.exit_code, told.stdout)


def test_events_are_audited_by_what_is_asked(asking):
    def found(*words):
        return [
            json.loads(line)["type"]
            for line in asking("audit", *words, "--json").stdout.splitlines()
        ]

    assert ["StartAsked", *asking.types("one")] == [
        type_ for type_ in found("--session", "one") if type_ != "ApprovalOpened"
    ]
    assert ["ApprovalRequested"] == found("--type", "ApprovalRequested")
    assert [] == found("--since", "2999-01-01")
    assert ([], "StartAsked") == (found("--until", "1h"), found("--since", "1h")[0])
    assert "StartAsked" in found("--actor", "user")
    assert [asking.types("one")[-1]] == found("--session", "one", "--limit", "1")


def test_a_time_that_is_listed_finds_what_was_recorded_then(finished):
    first = json.loads(finished("audit", "--json").stdout.splitlines()[0])
    listed = date_time(datetime.fromisoformat(first["recorded_at"]))

    found = finished("audit", "--since", listed, "--until", listed, "--json").stdout

    assert "StartAsked" in found


def test_a_type_that_no_event_has_is_refused_with_those_that_are(finished):
    done = finished("audit", "--type", "Nope")

    assert done.exit_code == 2
    told = " ".join(done.stderr.replace("│", " ").split())
    assert "there is no event 'Nope'; the types are AgentChanged, ApprovalDenied," in told


@pytest.mark.parametrize("option", ["--since", "--until"])
def test_a_time_that_is_none_is_refused_with_one_that_is(option, finished):
    done = finished("audit", option, "yesterday")

    assert done.exit_code == 2
    assert f"{option}: 'yesterday' is no time like 2026-01-31 or" in done.stderr


def test_an_audit_that_finds_nothing_says_so(finished):
    done = finished("audit", "--tool", "nothing")

    assert (0, "no events that fit in .cueline/log.db\n") == (done.exit_code, done.stdout)


def test_an_intact_log_is_verified(asking):
    done = asking("audit", "verify")

    assert done.exit_code == 0
    assert "every chain is intact" in done.stdout


def test_an_empty_list_says_so(finished):
    assert "no sessions that fit in .cueline/log.db" in finished("list", "--agent", "x").stdout


@pytest.mark.parametrize("words", [["list"], ["audit"], ["pending"]])
def test_a_log_is_looked_at_where_nothing_can_be_written(finished, words):
    before = finished(*words, "--json").stdout
    views = finished.log.with_name("log.db-views.db")
    views.unlink(missing_ok=True)
    views.mkdir()

    assert before == finished(*words, "--json").stdout


def test_a_terminal_shows_how_much_of_a_long_log_is_read(finished, monkeypatch):
    monkeypatch.setattr(open_read_models, "SLOW_SECONDS", 0.0)
    monkeypatch.setattr("sys.stderr.isatty", lambda: True, raising=False)
    told = []
    monkeypatch.setattr(open_log.typer, "echo", lambda text, **_: told.append(text))

    open_log.ask(finished.log, lambda reader: reader.catch_up())

    assert any(each.startswith("\rreading the log: [") for each in told)
    assert " 100 % of " in told[-1]


def test_who_waits_for_a_long_log_is_told_why(finished, monkeypatch):
    monkeypatch.setattr(open_read_models, "SLOW_SECONDS", 0.0)

    first = finished("list")

    assert first.stderr == "reading what is new in the log; a long one takes minutes …\n"
    assert first.stdout.startswith("SESSION")
