"""How long a question waits, and what becomes of it where nobody answers."""

import json
from dataclasses import fields
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

import pytest

from cueline.cli.pending import time_left
from cueline.console.text import date_time
from cueline.projections.approval import PendingRow
from cueline.testing.wait import wait_until
from tests.session_example import later

now = partial(datetime.now, UTC)


def test_the_end_of_a_wait_is_shown_with_its_day(shell):
    agent = shell.agent(shell.deletes, tools=("delete_file",), more=shell.reachable)

    asked = shell("run", "Tidy up", "--agent", agent, "--inline", "--id", "one")

    (pending,) = shell.json("pending")
    until = date_time(datetime.fromisoformat(pending["deadline_at"]))
    assert 2 == asked.stdout.count(f"until {until}")


def test_a_program_is_told_until_when_a_question_waits_not_when_people_are_reminded(shell):
    reminder = '[[policy.hooks]]\non = "reminder"\nafter_seconds = 60\ncommand = ["true"]\n'
    agent = shell.agent(shell.deletes, tools=("delete_file",), more=shell.reachable + reminder)

    asked = shell.json("run", "Tidy up", "--agent", agent, "--inline", "--id", "one")

    (pending,) = shell.json("pending")
    assert pending["deadline_at"] == asked["waiting"]["deadline_at"]


def test_a_question_that_expired_is_not_waited_for_again(shell):
    soon = "[policy]\napproval_seconds = 0.001\n"
    agent = shell.agent(shell.deletes, tools=("delete_file",), more=soon + shell.reachable)
    (shell.folder / "work" / "list.txt").touch()

    asked = shell("run", "Tidy up", "--agent", agent, "--inline", "--id", "one")
    resumed = shell("resume", "one", "--inline")

    assert 3 == asked.exit_code
    assert "session one: paused" in asked.stdout
    assert 0 == resumed.exit_code, resumed.output
    assert (shell.folder / "work" / "list.txt").exists()


def test_one_resume_goes_on_after_a_question_that_expired_while_nobody_was_there(shell):
    soon = "[policy]\napproval_seconds = 0.5\n"
    agent = shell.agent(shell.deletes, tools=("delete_file",), more=soon + shell.reachable)
    (shell.folder / "work" / "list.txt").touch()
    shell("run", "Tidy up", "--agent", agent, "--inline", "--id", "one")

    asked = shell.json("pending")
    wait_until(lambda: all(datetime.fromisoformat(each["deadline_at"]) < now() for each in asked))
    resumed = shell("resume", "one", "--inline")

    assert 0 == resumed.exit_code, resumed.output
    assert (shell.folder / "work" / "list.txt").exists()


# C15: who wants to say no has until then.
def test_when_a_question_is_granted_by_itself_is_told_wherever_it_is_shown(shell):
    told = '[[policy.hooks]]\non = "asked"\ncommand = ["cp", "/dev/stdin", "told"]\n'
    policy = f"[policy]\nauto_approve_after = 3600\n{told}"
    agent = shell.agent(shell.deletes, tools=("delete_file",), more=policy)

    asked = shell("run", "Tidy up", "--agent", agent, "--inline", "--id", "one")

    (pending,) = shell.json("pending")
    until = date_time(datetime.fromisoformat(pending["auto_at"]))
    assert f"may it run? delete_file (until {until}, then granted)" in asked.stdout
    assert ", then granted" in shell("pending").stdout
    heard = json.loads(Path("told").read_text())["auto_at"]
    assert datetime.fromisoformat(pending["auto_at"]) == datetime.fromisoformat(heard)


# C15: nobody has granted it before somebody drives it, and a denial until then counts.
@pytest.mark.parametrize(
    ("seconds", "auto", "told"),
    [
        (0, None, "1m 00s"),
        (60, None, "over"),
        (0, 20, "20 s, then granted"),
        (30, 20, "until it goes on, then granted"),
        (60, 20, "over"),
    ],
)
def test_how_long_a_person_can_answer_is_told(seconds, auto, told):
    known = {"deadline_at": later(60), "auto_at": None if auto is None else later(auto)}
    asked = PendingRow(**dict.fromkeys((each.name for each in fields(PendingRow)), "") | known)

    assert told == time_left(asked, later(seconds))
