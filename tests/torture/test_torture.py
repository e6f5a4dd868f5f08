"""A short run of `make torture`, and that it would see a fault."""

import signal
import sys
from random import Random

import pytest

from tests.torture.ground import Ground, Tally
from tests.torture.judge import judge
from tests.torture.lanes import TURNS, UNDISTURBED, inline

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
