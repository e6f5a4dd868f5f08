"""What the page of reliability says, beside a short run of the same."""

import re

import pytest

from bench.peers.kill import killed
from tests.torture import __main__ as torture
from tests.torture.page import PAGE, rows
from tests.torture.simulated import SCHEDULES

NEVER = {"lost", "repeated", "disagree", "zombies", "untold", "left", "passed", "secrets"}
NEVER |= {"broken", "wrong"}
"""The columns that count what must not happen."""


HEADINGS = re.findall(r"(?m)^## (What came of .*)$", PAGE.read_text())


@pytest.mark.parametrize("heading", HEADINGS)
def test_no_run_of_the_page_found_a_fault(heading):
    found = rows(heading)

    assert found, "nothing was run"
    for row in found:
        assert row.keys() & NEVER
        assert {"0"} == {row[name] for name in row.keys() & NEVER}, row


def test_the_page_has_each_kind_of_schedule():
    assert SCHEDULES.keys() == {row["kind"] for row in rows("What came of simulated schedules")}


def test_every_lane_of_processes_is_in_the_page():
    lanes = {row["lane"] for heading in HEADINGS for row in rows(heading) if "lane" in row}

    assert torture.PROCESSES.keys() <= lanes


def test_the_call_of_cueline_begins_as_often_as_the_page_says():
    told = {row["program"].split()[0]: row for row in rows("What do other programs do?")}

    outcome = killed("cueline")

    assert ("once", told["cueline"]["its result"]) == (
        told["cueline"]["the call began"],
        outcome.told,
    )
    assert 1 == outcome.began
    assert {"2 times"} == {row["the call began"] for name, row in told.items() if name != "cueline"}
