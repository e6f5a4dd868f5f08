"""Logs that were damaged, or that another version wrote."""

import asyncio
from dataclasses import replace
from datetime import UTC, datetime

import pytest

from cueline.actors.inbox import ask_start
from cueline.client.verify import AuditVerification
from cueline.events.agent import AgentSpec
from cueline.events.inbox import StartAsked
from cueline.events.journal import FactWrite
from cueline.events.session import SessionCompleted, SessionStarted
from cueline.events.store import ANY, Draft, Write
from cueline.runtime.open_log import open_log
from cueline.stores import SqliteStore
from cueline.testing.clock import FakeClock
from tests.scripted import memory_log

FLIP = (
    "UPDATE events SET payload = CAST(replace(CAST(payload AS TEXT), 'There is', 'There was') "
    "AS BLOB) WHERE type = 'ModelReplied'"
)


@pytest.fixture
def damaged(finished):
    """A log in which somebody has changed a word of the second reply."""
    finished.change(FLIP)
    return finished


# 004-079
def test_a_changed_row_is_named_by_its_position(damaged):
    done = damaged("audit", "verify")

    assert done.exit_code == 1
    version = damaged.types("one").index("SessionCompleted")
    assert f"session-default/one@{version} (position " in done.stdout
    assert "the payload is not the one that was appended" in done.stdout
    (bad,) = damaged.json("audit", "verify")["bad"]
    assert (version, "one") == (bad["version"], bad["session"])
    last = f"the first bad position is {bad['position']}, in the session one\n"
    assert done.stdout.endswith(last)


@pytest.mark.parametrize("command", ["show", "replay", "export", "tail"])
def test_what_is_before_a_damaged_row_still_loads(damaged, command):
    done = damaged(command, "one")

    assert done.exit_code == 1
    assert "(position " in done.stderr
    assert "what is before this event still loads" in done.stderr
    assert "list_files" in done.stdout
    assert "There was" not in done.stdout


def test_a_damaged_session_says_what_is_left_and_what_to_do(damaged):
    done = damaged("show", "one")

    last = damaged.types("one").index("SessionCompleted") - 1
    assert "session one: damaged · 1 turn" in done.stdout
    assert f"all is well up to version {last}; go on from there with" in done.stdout
    assert f"  cueline fork one --at {last}\n" in done.stdout
    assert "  cueline audit verify\n" in done.stdout
    assert "resume" not in done.stdout


def test_what_is_before_the_damage_can_be_forked(damaged):
    last = damaged.types("one").index("SessionCompleted") - 1

    done = damaged("fork", "one", "--at", str(last), "--id", "two", "--inline")

    assert f"forked from one at version {last}" in done.stdout
    assert 0 == damaged("replay", "two", "--check").exit_code


def test_the_doctor_finds_the_damage(damaged):
    found = {each["subject"]: each for each in damaged.json("doctor")}["log"]

    assert "bad" == found["verdict"]
    assert "damaged in 1 place: session-default/one@" in found["found"]
    assert "restore it from a backup; `cueline audit verify` names every one" in found["advice"]


def test_a_damaged_session_is_still_listed(damaged):
    done = damaged("list")

    assert done.exit_code == 0
    assert "one" in done.stdout


def test_other_sessions_do_not_suffer(damaged):
    done = damaged("run", "Hi", "--agent", damaged.agent(damaged.hello), "--inline", "--id", "two")

    assert done.exit_code == 0
    assert 0 == damaged("show", "two").exit_code


def test_a_damaged_session_is_not_gone_on_with(asking):
    asking.change("UPDATE events SET actor = 'user:mallory' WHERE type = 'ModelRequested'")

    done = asking("resume", "one", "--inline")

    assert done.exit_code == 1
    assert "it does not follow from the event before it" in done.stderr


def test_a_missing_row_is_noticed(finished):
    finished.change("DELETE FROM events WHERE type = 'ToolStarted'")

    done = finished("audit", "verify")

    assert done.exit_code == 1
    assert "position 6: it is missing" in done.stdout
    assert "session-default/one@" in done.stdout


@pytest.mark.parametrize(
    ("command", "before"),
    [
        ("list", "one"),
        ("costs", "one"),
        ("audit", "SessionStarted"),
        ("pending", "nothing waits"),
        ("breakers", "no failures"),
        ("status", "running session"),
    ],
)
def test_a_list_shows_what_is_before_a_missing_row(finished, command, before):
    finished.change("DELETE FROM events WHERE type = 'ToolStarted'")

    done = finished(command)

    assert done.exit_code == 1
    assert "error: position 6: it is missing\nhint: restore the log" in done.stderr
    assert before in done.stdout


@pytest.mark.parametrize("command", ["list", "audit", "costs", "breakers", "status"])
@pytest.mark.parametrize("time", [9 * 10**18, -(9 * 10**18), -1])
def test_a_time_that_no_calendar_holds_is_named_as_other_damage_is(finished, command, time):
    finished.change("UPDATE events SET recorded_us = ? WHERE type = 'SessionCompleted'", time)

    done = finished(command)

    version = finished.types("one").index("SessionCompleted") + 1
    assert done.exit_code == 1
    assert f"error: session-default/one@{version} (position " in done.stderr
    assert "no time that a calendar holds\nhint: restore the log" in done.stderr
    assert done.stdout


def test_nothing_follows_an_event_with_a_time_that_no_calendar_holds(finished):
    """I14: the log's time never goes back, so that all else would be recorded at it, too."""
    finished.change("UPDATE events SET recorded_us = 9e18 WHERE type = 'SessionCompleted'")
    last = finished.types("one").index("SessionCompleted") - 1

    done = finished("fork", "one", "--at", str(last), "--inline")

    assert done.exit_code == 1
    assert "no time that a calendar holds\nhint: restore the log" in done.stderr


def test_a_cut_tail_is_noticed(finished):
    finished.change("DELETE FROM events WHERE type = 'SessionCompleted'")

    assert finished("audit", "verify").exit_code == 1


def test_a_head_that_was_changed_is_named(finished):
    finished.change("UPDATE streams SET head_hash = zeroblob(32) WHERE category = 'session'")

    done = finished("audit", "verify")

    assert done.exit_code == 1
    assert "session-default/one@" in done.stdout
    assert "the head of its stream is not the hash of this event" in done.stdout


@pytest.mark.parametrize(
    "change", ["head_hash = zeroblob(32)", "epoch = 0, owner = NULL", "version = version - 1"]
)
def test_nothing_is_appended_behind_a_head_that_was_changed(asking, change):
    asking("approve", "one.1.0.1")
    asking.change(f"UPDATE streams SET {change} WHERE category = 'session'")
    before = asking.types("one")

    done = asking("resume", "one", "--inline")

    assert done.exit_code == 1
    assert "hint: restore the log from a backup" in done.stderr
    assert before == asking.types("one")


class Busy(SqliteStore):
    """A log to which somebody appends as soon as it was read to its end."""

    async def read_all(self, after=0, categories=None, limit=None):
        async for event in super().read_all(after, categories, limit):
            yield event
        if categories is not None:
            return
        draft = Draft("PauseAsked", 1, b"{}", 0, "user")
        await self.append([Write("inbox-default/one", [draft], ANY)], key=f"{after}")


async def test_what_is_appended_while_the_log_is_checked_is_no_damage(finished):
    store = Busy.open(finished.log, FakeClock())
    before = await store.last_position()

    checked = AuditVerification(replace(memory_log(finished.folder), store=store))
    await checked.run()

    assert ([], before, before + 1) == (checked.bad, checked.events, await store.last_position())
    await store.close()


def test_a_long_result_that_is_gone_is_noticed(long_result):
    long_result.change("DELETE FROM blobs WHERE length(content) >= ?", len(long_result.text))

    verified = long_result("audit", "verify")
    shown = long_result("show", "one", "--full")

    version = long_result.types("one").index("ToolReturned") + 1
    assert (1, 1) == (verified.exit_code, shown.exit_code)
    assert f"session-default/one@{version} (position " in verified.stdout
    assert f"session-default/one@{version} (position " in shown.stderr
    assert "I will look." in shown.stdout


@pytest.mark.parametrize("command", [["list"], ["show", "one"], ["audit", "verify"]])
def test_a_log_of_a_newer_version_is_refused_untouched(finished, command):
    finished.change("UPDATE meta SET format = 99")
    before = finished.log.read_bytes()

    done = finished(*command)

    assert done.exit_code == 2
    assert "upgrade cueline" in done.stderr
    assert before == finished.log.read_bytes()


def test_what_is_no_log_is_refused(shell):
    (shell.folder / "notes.txt").write_text("not a database, but long enough to be one\n" * 100)

    done = shell("list", "--log", "notes.txt")

    assert done.exit_code == 2
    assert "it is not a log of cueline" in done.stderr


def test_a_log_that_cannot_be_made_is_refused(shell):
    (shell.folder / "file").touch()

    done = shell(
        "run", "Hi", "--agent", shell.agent(shell.hello), "--inline", "--log", "file/log.db"
    )

    assert done.exit_code == 2
    assert done.stderr.startswith("error: file/log.db: ")


async def test_a_decision_that_the_rules_would_not_make_is_named(shell):
    """I10: its chain is intact, so that only deciding again can tell."""
    agent = AgentSpec(name="clerk", provider="scripted", model="script.toml")
    asked = StartAsked(agent=agent, goal="Hi", asked_at=datetime.now(UTC))
    started = SessionStarted(agent=agent, goal="Hi", open=False, attached=False, labels={}, epoch=1)
    async with open_log(shell.log) as log:
        stream = await ask_start(log.journal(), "one", asked)
        epoch = await log.store.acquire(stream, "host-1", 0)
        write = FactWrite(
            stream=stream,
            steps=[[started, SessionCompleted(result="by magic")]],
            expected_version=0,
            epoch=epoch,
        )
        await log.journal().append([write], key="1")

    done = await asyncio.to_thread(shell, "replay", "one", "--check")

    assert done.exit_code == 1
    assert "one@2: decided anew, this step differs" in done.stdout
    assert "recorded: SessionCompleted" in done.stdout
    assert "decided:  ModelRequested" in done.stdout
