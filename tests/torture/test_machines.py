"""A short run of `make torture LANES=machines`, and that it would see a fault."""

from random import Random

import pytest

from tests.torture.ground import Tally
from tests.torture.judge import judge
from tests.torture.lanes import UNDISTURBED
from tests.torture.machines import missing
from tests.torture.scenarios import MachinesGround, drive, judge_rows, kill_node

SESSIONS = [f"s{number}" for number in range(1, 5)]


class TwoMachines(MachinesGround):
    count, longest_seconds = 2, 0.3


@pytest.fixture(scope="module")
def ground(tmp_path_factory):
    """A log with sessions of which a machine was killed, and which went on to their end."""
    if reason := missing():
        pytest.skip(reason)
    folder = tmp_path_factory.mktemp("machines") / "node"
    ground = TwoMachines(folder, Random(7), Tally(), (3, 5))
    try:
        drive(kill_node, ground, SESSIONS)
        yield ground
    finally:
        ground.close()
        assert [] == ground.tally.found


@pytest.mark.ray
@pytest.mark.long
def test_nothing_is_lost_or_repeated_when_a_machine_dies(ground, figures):
    """000-068, I3, I5."""
    judge(ground, SESSIONS, UNDISTURBED)

    tally = ground.tally
    [seconds] = tally.seconds
    figures(f"{len(SESSIONS)} sessions ended {seconds:.0f} s after a machine died")
    assert [] == tally.found
    assert len(SESSIONS) == tally.sessions


def test_an_event_of_a_former_owner_and_a_parent_that_was_not_told_would_be_seen():
    found = Tally()
    taken_over = [("session-default/s1", "TurnStarted", b"", epoch) for epoch in (1, 2, 1, 2)]
    asked = [("session-default/s2", "CallDelegated", b"", 1)] * 2
    told = [("inbox-default/s2", "ChildEnded", b"", 0)]

    judge_rows([*taken_over, *asked, *told], found)

    assert (1, 1) == (found.zombies, found.untold), found.found
