"""`--at` and `--every`: sessions and runs that start later."""

import json
import time
from datetime import UTC, datetime, timedelta

import pytest

from tests.cli.test_runs import offered

__all__ = ["offered"]


def later(shell, *words):
    return shell("run", "Hi", "--agent", shell.agent(shell.hello), "--id", "one", *words)


def test_a_session_that_starts_later_is_recorded_and_left(shell):
    done = later(shell, "--at", "2026-12-31T23:00Z", "--every", "1d")

    assert (0, "one\n") == (done.exit_code, done.stdout)
    assert "it starts 202" in done.stderr
    assert "nothing runs that would take it up: `cueline up`" in done.stderr
    _, row = shell("list").stdout.splitlines()
    assert "created, starts 202" in row
    assert ", every 1 d" in row
    assert "nobody has taken it up yet; it starts 202" in shell("show", "one").stdout
    (row,) = shell.json("list")
    assert ("time", {"code": "scheduled", "every_seconds": 86_400.0}) == (
        row["wait_kind"],
        row["wait_cause"],
    )


def test_a_time_that_the_clocks_skip_is_said(shell, monkeypatch):
    monkeypatch.setenv("TZ", "Europe/Berlin")
    time.tzset()
    try:
        done = later(shell, "--at", "2027-03-28T02:30")
    finally:
        monkeypatch.undo()
        time.tzset()

    said = "it starts 2027-03-28 03:30:00+02:00; the clocks skip 2027-03-28 02:30:00"
    assert (0, True) == (done.exit_code, said in done.stderr)


def test_json_tells_when_it_starts(shell):
    before = datetime.now(UTC)

    receipt = json.loads(later(shell, "--at", "+10m", "--json").stdout)

    starts_in = datetime.fromisoformat(receipt["starts_at"]) - before
    assert ("one", True) == (receipt["session"], receipt["recorded"])
    assert timedelta(minutes=10) <= starts_in < timedelta(minutes=11)


def test_show_tells_when_it_starts_and_stop_ends_the_series(shell):
    later(shell, "--every", "2h", "--at", "+1h")

    stopped = shell("stop", "one")
    shown = shell("show", "one").stdout

    assert 0 == stopped.exit_code
    assert "waiting for its time until 20" in shown
    assert "it starts then, and another one every 2 h" in shown
    assert ["stopped"] == [each["status"] for each in shell.json("list")]


def test_one_that_begins_now_repeats(shell):
    later(shell, "--every", "1h")
    resumed = shell("resume", "one", "--inline")

    assert 0 == resumed.exit_code, resumed.output
    first, following = sorted(shell.json("list"), key=lambda each: each["id"])
    assert ("one", "completed") == (first["id"], first["status"])
    assert following["id"].startswith("one.20")
    assert "time" == following["wait_kind"]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--at", "25:00"], "at: '25:00' is no time of the next ten years; like 07:30"),
        (["--at", "2026-01-01"], "at: '2026-01-01' has passed; leave it out to start at once"),
        (["--every", "often"], "every: 'often' is no time; a time is a number of seconds"),
        (["--every", "1h", "--inline"], "--every and --inline exclude each other"),
        (["--at", "07:30", "--ray"], "--at and --ray exclude each other"),
    ],
)
def test_a_time_that_cannot_be_records_nothing(shell, words, said):
    done = later(shell, *words)

    assert 2 == done.exit_code
    assert said in " ".join(done.stderr.split())
    assert [] == shell.json("list")


def test_many_sessions_start_now(shell):
    (shell.folder / "tasks.jsonl").write_text('"Hi"\n')
    agent = shell.agent(shell.hello)

    done = shell("run", "--many", "tasks.jsonl", "--agent", agent, "--at", "07:30")

    assert (2, True) == (done.exit_code, "--many and --at exclude each other" in done.stderr)


def test_a_run_that_starts_later_says_so(offered):
    first = offered("submit", "crawler", "Go", "--at", "+1h", "--every", "1d", "--key", "news")
    again = offered("submit", "crawler", "Go", "--at", "+2h", "--every", "1d", "--key", "news")
    other = offered("submit", "crawler", "Go", "--every", "1h", "--key", "news")

    assert (0, 0, 2) == (first.exit_code, again.exit_code, other.exit_code)
    assert first.stdout == again.stdout
    assert "started it with another interval; choose another key" in other.stderr
    (run,) = offered.json("runs")
    assert ("created", True) == (run["status"], run["starts_at"] is not None)
    assert "created, starts 20" in offered("runs").stdout


@pytest.mark.parametrize("command", ["run", "submit"])
def test_help_teaches_to_start_later(shell, command):
    told = shell(command, "--help").stdout

    assert "--at 07:30 --every 1d" in told
    assert {"--at", "--every"} <= set(told.split())
