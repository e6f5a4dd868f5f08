"""A short run of `make torture`, and that it would see a fault."""

import json
import signal
import subprocess
import sys
from random import Random

import pytest

from tests.torture import forked
from tests.torture.forked import ForkedGround
from tests.torture.ground import Ground, Tally
from tests.torture.judge import judge
from tests.torture.lanes import TURNS, UNDISTURBED, inline
from tests.torture.page import rows
from tests.torture.simulated import SCHEDULES, run_schedules

SESSIONS = ["s1", "s2"]


@pytest.fixture(scope="module")
def ground(tmp_path_factory):
    """A log with sessions that were killed at random, and went on to their end."""
    folder = tmp_path_factory.mktemp("torture") / "inline"
    ground = Ground(folder, Random(7), Tally(), TURNS["inline"])
    inline(ground, SESSIONS)
    return ground


def test_nothing_is_lost_or_repeated_by_kills_at_random_moments(ground, figures):
    judge(ground, SESSIONS, UNDISTURBED)

    tally = ground.tally
    figures(f"{tally.kills.total()} kills in {tally.sessions} sessions: {dict(tally.kills)}")
    assert [] == tally.found
    assert tally.kills.total()
    assert len(SESSIONS) == tally.sessions


def test_a_call_that_ran_twice_and_a_lost_event_would_be_seen(ground):
    found = ground.tally = Tally()
    stream = "session-default/s1"
    ground.acknowledged[stream] = [b"an event that is not there"]
    key = f"{stream}/{next(iter(pays(ground, 's1')))}"
    with (ground.folder / "s1" / "journal").open("a") as journal:
        journal.write(f"start {key} 9 0 1 1\nstart {key} 9 0 1 1\n")

    judge(ground, ["s1"], UNDISTURBED)

    assert (1, 2, 0) == (found.lost, found.repeated, found.disagreements), found.found


ENDED = """
import os, signal
from tests.torture import __main__ as torture

class Ground:
    def __init__(self, folder, *_):
        self.folder = folder

    def close(self):
        print("closed")

def drive(*_):
    os.kill(os.getpid(), signal.SIGTERM)

torture.LANES["inline"] = torture.Lane(drive, (1, 1), ground=Ground)
torture.main()
"""


def test_a_run_that_is_told_to_end_clears_up_first(popen):
    command = [sys.executable, "-c", ENDED, "--lanes", "inline"]

    process = popen(command, stdout=-1, text=True)

    assert ("closed\n", None) == process.communicate()
    assert 128 + signal.SIGTERM == process.returncode


def pays(ground, session):
    return [c["effect"] for c in ground.exported(session)["tool_calls"] if c["tool"] == "pay"]


@pytest.fixture(scope="module")
def forked_ground(tmp_path_factory):
    """A log whose sessions were driven by forks, a few of which were killed."""
    ground = ForkedGround(tmp_path_factory.mktemp("forked") / "log", Random(7), Tally(), (6, 8))
    forked.drive(ground, SESSIONS, lives=5)
    return ground


def test_nothing_is_lost_repeated_untold_or_leaked_by_killed_forks(forked_ground, figures):
    forked.judge_forked(forked_ground, SESSIONS, UNDISTURBED)

    tally = forked_ground.tally
    figures(f"{tally.kills.total()} kills, {tally.children} children")
    assert [] == tally.found
    assert tally.kills["fork"]


def test_what_a_killed_fork_did_wrong_would_be_seen(forked_ground):
    found = forked_ground.tally = Tally()
    stream = "session-default/s1"
    forked_ground.seen[stream].append(("ToolReturned", b"an event that is not there"))
    key = f"{stream}/{pays(forked_ground, 's1')[0]}"
    with (forked_ground.folder / "s1" / "journal").open("a") as journal:
        journal.write(f"start {key} 9 0 1 1\n")
    (forked_ground.folder / "log.db-copy").write_text(forked.PLANTED)

    forked.judge_forked(forked_ground, SESSIONS, UNDISTURBED)

    assert (1, 1) == (found.lost, found.secrets), found.found
    assert found.repeated


# 000-071, I5, I7, I8, I10, I13: a few schedules of each kind, in a process with a seed of its own.
@pytest.mark.parametrize("kind", SCHEDULES)
def test_simulated_schedules_keep_the_promises(kind, figures):
    done = run_schedules(kind, 7, seconds=0, least=2 if kind in {"tree", "fleet"} else 20)

    figures(f"{kind}: {done.count} schedules in {done.seconds:.1f} s")
    assert [] == done.found
    told = [
        row["broken"] for row in rows("What came of simulated schedules") if row["kind"] == kind
    ]
    assert {str(len(done.found))} == set(told), "the page says something else"


def test_a_broken_promise_is_told_with_its_seed(monkeypatch):
    def broken(chance):
        assert chance.random() < 0.5, "it ran twice"

    monkeypatch.setitem(SCHEDULES, "budget", broken)
    done = run_schedules("budget", 1, seconds=0, least=20)

    assert 0 < len(done.found) < 20
    assert done.found[0].startswith("budget 1 ")
    assert "AssertionError: it ran twice" in done.found[0]


def power(*words):
    """Run a short lane of power cuts in a process of its own; return what it tells."""
    command = [sys.executable, "-m", "tests.torture.power", "--cuts", "60", *words]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.stdout, done.stderr
    return json.loads(done.stdout)


# 000-071: what was acknowledged is there after a power cut, and after each failure of the disk.
def test_nothing_acknowledged_is_lost_by_power_cuts_and_failing_disks(figures):
    told = power("--step", "40")

    figures(f"{told['cuts']} power cuts, {told['runs']} runs with a failing disk")
    assert 0 == told["wrong"], [*told["cut"], *told["disk"]]
    page = [row["wrong"] for row in rows("What came of power cuts and failing disks")]
    assert {str(told["wrong"])} == set(page), "the page says something else"


def test_a_disk_that_forgets_what_was_synced_is_noticed():
    assert power("--forgets")["wrong"]
