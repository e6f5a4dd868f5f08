"""`cueline erase`, `archive` and `cleanup`: what goes, what stays, and what they refuse."""

import gzip
import json
import os
from base64 import b64decode
from hashlib import sha256

import pytest

from cueline.projections.views import TABLES
from cueline.sqlite_library import sqlite_library
from cueline.testing.wait import wait_until

PLANTED = "planted-words"
SAYS = f"""
[[reply]]
text = "I look for {PLANTED}."
calls = [{{ name = "run_command", arguments = {{ command = "cat long" }} }}]

[[reply]]
calls = [{{ name = "write_file", arguments = {{ path = "a.txt", content = "{PLANTED}" }} }}]

[[reply]]
text = "It is {PLANTED}."
"""
ASKS = """
[policy]
approval = "off"
[[policy.rules]]
name = "changes"
answer = "ask"
tools = ["write_file"]
"""


@pytest.fixture
def spoken(shell):
    """A shell whose log holds a session `one` with the planted words wherever a text can be."""
    (shell.folder / "work").mkdir()
    (shell.folder / "work" / "long").write_text(f"{PLANTED}\n" * 5000)
    agent = shell.agent(SAYS, tools=("run_command", "write_file"), more=ASKS)
    run = shell("run", f"Find {PLANTED}", "--agent", agent, "--inline", "--id", "one")
    assert 3 == run.exit_code, run.output
    assert 0 == shell("approve", "one.2.0.1", "--note", PLANTED).exit_code
    done = shell("resume", "one", "--inline")
    assert 0 == done.exit_code, done.output
    for each in ("work/long", "work/a.txt", "script.toml"):
        (shell.folder / each).unlink()
    assert with_planted(shell), "the test sees what is there"
    return shell


def with_planted(shell, where=""):
    """Return the files that have the planted words."""
    files = [path for path in (shell.folder / where).rglob("*") if path.is_file()]
    # An index leaves out the beginning that a word shares with the word before it.
    return [path for path in files if PLANTED.encode()[3:] in path.read_bytes()]


def rows(shell):
    """Return all rows of the read models."""
    shell("list")
    db = sqlite_library().connect(f"{shell.log}-views.db")
    try:
        names = [name for (name,) in db.execute(TABLES)]
        return {name: sorted(db.execute(f"SELECT * FROM {name}").fetchall()) for name in names}
    finally:
        db.close()


def test_erased_words_are_in_no_file(spoken):
    cost = spoken.json("costs")
    assert f"{spoken.log}-views.db" in map(str, with_planted(spoken))
    assert "ToolReturned" in spoken("audit", "--text", PLANTED).stdout
    erased = spoken.json("erase", "one", "--reason", "she asked for it", "--yes")

    assert [] == with_planted(spoken)
    ((session, events),) = [(each["session"], each["events"]) for each in erased["sessions"]]
    assert ("one", True) == (session, events > 10)
    assert cost == spoken.json("costs")
    assert 0 == spoken("audit", "verify").exit_code
    assert [] == spoken.json("list")
    assert "no events" in spoken("audit", "--text", PLANTED).stdout
    (told,) = [
        json.loads(line)
        for line in spoken("audit", "--type", "SessionEmptied", "--json").stdout.splitlines()
    ]
    assert "one" == told["session"]


def test_read_models_that_are_filled_again_are_the_same(spoken):
    spoken.json("erase", "one", "--yes")
    before = rows(spoken)
    for part in spoken.log.parent.glob("log.db-views*"):
        part.unlink()

    assert before == rows(spoken)


@pytest.mark.parametrize("command", ["show", "export", "resume", "tail", "fork --at 3"])
def test_who_asks_for_an_erased_session_is_told_why_it_is_gone(spoken, command):
    spoken.json("erase", "one", "--reason", "she asked for it", "--yes")
    command, *options = command.split()
    done = spoken(command, "one", *options)

    assert 2 == done.exit_code
    assert "one: its content was erased on 20" in done.stderr
    assert ": she asked for it" in done.stderr


def test_its_id_is_not_given_again(spoken):
    agent = spoken.agent(spoken.hello)
    spoken.json("erase", "one", "--yes")

    assert "exists" in spoken("run", "Hi", "--agent", agent, "--inline", "--id", "one").stderr


def test_a_log_in_use_is_scrubbed_later(spoken):
    agent = spoken.agent(spoken.slow.replace(PLANTED, ""))
    running = spoken.start("run", "Wait", "--agent", agent, "--inline", "--id", "two")
    spoken.wait_for("two", "ModelStarted")
    erased = spoken("erase", "one", "--yes")
    refused = spoken("log", "scrub")
    running.kill()
    running.wait()
    wait_until(lambda: spoken("log", "scrub").exit_code == 0)

    assert "until `cueline log scrub`" in erased.stderr
    assert "works on it; end it first" in refused.stderr
    assert [] == with_planted(spoken)


def test_a_session_that_may_go_on_is_not_erased(asking):  # C40
    refused = asking("erase", "one", "--yes")

    assert 2 == refused.exit_code
    assert "one: it is waiting; `cueline stop one` ends it first" in refused.stderr
    assert "Tidy up" in asking("show", "one").output


def test_a_session_stays_while_one_below_it_may_go_on(asking):  # C41
    forked = asking("fork", "one", "--at", "1", "--inline", "--id", "other")
    assert 3 == forked.exit_code, forked.output
    assert 0 == asking("stop", "one").exit_code
    asking("resume", "one", "--inline")
    refused = asking("erase", "one", "--yes")

    assert 2 == refused.exit_code
    assert "other: it is waiting; `cueline stop other` ends it first" in refused.stderr


# 002-020
def test_all_sessions_of_a_person_are_erased(finished, monkeypatch):
    monkeypatch.setenv("LOGNAME", "ada")
    agent = finished.agent(finished.hello)
    finished("run", "Hi", "--agent", agent, "--inline", "--id", "hers")
    erased = finished.json("erase", "--user", "ada", "--yes")

    assert ["hers"] == [each["session"] for each in erased["sessions"]]
    assert ["one"] == [each["id"] for each in finished.json("list")]


def test_a_fork_goes_with_the_past_that_it_shares(finished):
    fork = finished.json("fork", "one", "--at", "5", "--inline", "--id", "other")
    assert fork
    erased = finished.json("erase", "one", "--yes")

    assert ["other", "one"] == [each["session"] for each in erased["sessions"]]
    assert 0 == finished("audit", "verify").exit_code


def test_an_archive_has_all_that_went(spoken):
    """000-035, C40."""
    events = spoken("export", "one", "--format", "events").stdout.splitlines()
    archived = spoken.json("archive", "--to", "kept", "--older-than", "0d")
    (file,) = (spoken.folder / "kept").iterdir()
    lines = [json.loads(line) for line in gzip.decompress(file.read_bytes()).splitlines()]
    facts = [line for line in lines if line.get("stream") == "session-default/one"]
    blobs = {line["blob"]: b64decode(line["base64"]) for line in lines if "blob" in line}

    assert [str(file)] == [each["archive"] for each in archived["sessions"]]
    assert [json.loads(line)["fact"] for line in events] == [each["fact"] for each in facts]
    assert blobs
    assert all(sha256(content).hexdigest() == name for name, content in blobs.items())
    assert [] == with_planted(spoken, ".cueline")
    assert "archived on 20" in spoken("show", "one").stderr
    assert str(file) in spoken("show", "one").stderr


def test_an_erased_session_goes_from_its_archive_too(spoken):
    spoken.json("archive", "--to", "kept", "--older-than", "0d")
    erased = spoken("erase", "one", "--yes", "--reason", "she asked for it")

    assert "one: its archive was deleted" in erased.output
    assert [] == list((spoken.folder / "kept").iterdir())
    assert "erased on 20" in spoken("show", "one").stderr
    assert 0 == spoken("audit", "verify").exit_code
    assert [] == spoken.json("erase", "one", "--yes")["sessions"]


def test_an_archive_on_another_machine_is_named(spoken):
    spoken.json("archive", "--to", "kept", "--older-than", "0d")
    (spoken.folder / "kept").rename(spoken.folder / "away")
    erased = spoken("erase", "one", "--yes")

    assert "kept/one.jsonl.gz is not on this machine: delete it where it is" in erased.output
    assert "archived on 20" in spoken("show", "one").stderr


def test_an_archive_that_cannot_be_written_costs_nothing(spoken):
    (spoken.folder / "kept").write_text("a file")
    refused = spoken("archive", "--to", "kept", "--older-than", "0d")

    assert 2 == refused.exit_code
    assert "kept" in refused.stderr
    assert PLANTED in spoken("show", "one").output


def test_only_old_sessions_are_cleaned_up(spoken):
    """004-045, D11: the time of the last event counts."""
    os.utime(spoken.log, (0, 0))
    nothing = spoken.json("cleanup", "--older-than", "30d", "--yes")
    found = spoken.json("cleanup", "--older-than", "0d", "--dry-run")
    assert PLANTED in spoken("show", "one").output
    done = spoken.json("cleanup", "--older-than", "0d", "--yes")

    assert [] == nothing["sessions"]
    assert ["one"] == [each["session"] for each in found["sessions"]]
    assert found["sessions"] == done["sessions"]
    assert [] == with_planted(spoken)
    assert [] == spoken.json("cleanup", "--older-than", "30d", "--yes")["sessions"]


def test_a_paused_session_is_cleaned_up_only_on_demand(shell):  # C40
    agent = shell.agent(shell.two_turns, tools=("list_files",))
    run = shell("run", "Look", "--agent", agent, "--inline", "--id", "one", "--max-turns", "1")
    assert 3 == run.exit_code, run.output
    kept = shell.json("cleanup", "--older-than", "0d", "--yes")
    gone = shell.json("cleanup", "--older-than", "0d", "--paused", "--yes")

    assert ([], ["one"]) == (kept["sessions"], kept["kept"])
    assert ["one"] == [each["session"] for each in gone["sessions"]]


def test_a_wrong_age_is_named_before_anybody_is_asked(finished):
    refused = finished("cleanup", "--older-than", "-1d")

    assert 2 == refused.exit_code
    assert "'-1d' is no time like" in refused.stderr
    assert "30d (m, h, d or w)" in refused.stderr


@pytest.mark.parametrize("command", ["cleanup --older-than 0d", "erase one"])
def test_nothing_goes_for_good_unasked(finished, command):
    refused = finished(*command.split())

    assert 2 == refused.exit_code
    assert "say --yes" in refused.stderr
    assert ["one"] == [each["id"] for each in finished.json("list")]
