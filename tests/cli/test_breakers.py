"""Breakers over commands and processes that live for a moment only (004-005, 004-057)."""

import json

import pytest

from cueline.config.environment import user_name

DOWN = '[[reply]]\nfail = { kind = "overloaded", message = "no room" }\n'
SPARE = "[retry]\nmax_retries = 0\n[breaker]\nthreshold = 2\n"


@pytest.fixture
def broken(shell):
    """A shell whose log holds two commands that failed, and so an open breaker."""
    shell.clerk = shell.agent(DOWN, more=SPARE)
    for name in ("one", "two"):
        done = shell("run", "Go", "--agent", shell.clerk, "--inline", "--id", name)
        assert 3 == done.exit_code, done.output
    return shell


def test_commands_that_end_at_once_count_together(broken):
    (breaker,) = broken.json("breakers")

    told = (breaker["state"], breaker["kind"], breaker["failures"], breaker["openings"])
    assert ("open", "overloaded", 2, 1) == told
    assert breaker["until"] > breaker["since"]


def test_breakers_are_listed_as_a_table(broken):
    head, row = broken("breakers").stdout.splitlines()

    assert ["BREAKER", "STATE", "FOR", "UNTIL", "LAST", "FAILURE", "COUNTED"] == head.split()
    assert row.startswith("scripted.")
    assert ["open", "overloaded", "2"] == [row.split()[n] for n in (1, -2, -1)]


# A process of its own meets what others opened, and leaves the model alone.
def test_another_process_keeps_to_an_open_breaker(broken):
    process = broken.start("run", "Go", "--agent", broken.clerk, "--inline", "--id", "three")
    broken.wait_for("three", "SessionWaiting")
    assert "it goes on by itself" in broken("show", "three").stdout
    process.kill()
    process.wait()
    assert "cueline resume three" in broken("show", "three").stdout

    waiting = broken.json("export", "three")["waiting"]
    assert "breaker" == waiting["kind"]
    assert "ModelStarted" not in broken.types("three")
    assert "keeps failing (overloaded)" in broken("show", "three").stdout


def test_a_pause_below_an_open_breaker_has_no_end_of_its_own(broken):
    agent = broken.agent(DOWN, more=f'{SPARE}on_open = "pause"\n')

    waiting = broken.json("run", "Go", "--agent", agent, "--inline", "--id", "three")["waiting"]

    assert ("operator", None) == (waiting["kind"], waiting["deadline_at"])


def test_a_log_without_failures_says_so(finished):
    assert "no failures of models or tools that count" in finished("breakers").stdout
    assert [] == json.loads(finished("breakers", "--json").stdout)


def test_a_person_resets_a_breaker_and_the_next_call_goes_out(broken):
    (breaker,) = broken.json("breakers")
    reset, again = broken("breakers", "reset", breaker["id"]), broken.json("breakers")

    assert (f"{breaker['id']}: reset; calls go out again\n", 0) == (reset.stdout, reset.exit_code)
    assert ["closed"] == [each["state"] for each in again]
    assert f"user:{user_name()}" in broken("audit", "--type", "BreakerClosed", "--json").stdout
    broken("run", "Go", "--agent", broken.clerk, "--inline", "--id", "three")
    assert "ModelStarted" in broken.types("three")


def test_a_breaker_that_is_closed_or_unknown_is_not_reset(broken):
    (breaker,) = broken.json("breakers")
    broken("breakers", "reset", breaker["id"])

    twice, unknown = (
        broken.json("breakers", "reset", breaker["id"]),
        broken("breakers", "reset", "x"),
    )

    assert {"id": breaker["id"], "reset": False, "by": user_name()} == twice
    assert (2, True) == (unknown.exit_code, "there is no such breaker" in unknown.stderr)


# Whoever waits hears of it at once.
def test_a_session_that_waits_for_a_breaker_goes_on_when_it_is_reset(broken):
    broken.start("run", "Go", "--agent", broken.clerk, "--inline", "--id", "three")
    broken.wait_for("three", "SessionWaiting")

    broken("breakers", "reset", broken.json("breakers")[0]["id"])

    broken.wait_for("three", "ModelStarted")


def test_a_session_that_a_person_resumes_tries_at_once(broken):
    process = broken.start("run", "Go", "--agent", broken.clerk, "--inline", "--id", "three")
    broken.wait_for("three", "SessionWaiting")
    process.kill()
    process.wait()

    assert "ModelStarted" not in broken.types("three")
    broken.start("resume", "three", "--inline")

    broken.wait_for("three", "ModelStarted")
