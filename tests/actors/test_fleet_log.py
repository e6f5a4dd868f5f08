"""Appends to the stream of a fleet, from several processes."""

import asyncio
import subprocess
import sys
from pathlib import Path

import pytest

from cueline.actors.fleet_log import FleetLog
from cueline.deciders.fleet import RUNNERS, Range, TakeFleet, group_of
from cueline.errors import FencedError, UnknownOutcomeError
from cueline.events.codec import Codec
from cueline.events.fleet import FLEET_STREAM, FleetTaken, RunnerBack, ScaleAsked
from cueline.events.journal import Journal
from cueline.runtime.open_log import open_log
from cueline.stores import MemoryStore
from cueline.testing.clock import NOON, FakeClock
from cueline.testing.wait import PATIENCE_SECONDS

ROOT = Path(__file__).parents[2]


class Unsure(MemoryStore):
    """A log that does what it is asked, and says once that it does not know."""

    sure = True

    async def append(self, writes, key):
        done = await super().append(writes, key)
        if not self.sure:
            self.sure = True
            raise UnknownOutcomeError(FLEET_STREAM, "the connection broke")
        return done


@pytest.fixture
def journal():
    clock = FakeClock()
    return Journal(Unsure(clock), Codec(), clock.now)


def scale(count):
    return ScaleAsked(group=group_of(RUNNERS), least=count, most=count, by="ada", at=NOON)


def taken(epoch):
    return TakeFleet(FleetTaken(epoch=epoch, up="up-1", at=NOON))


async def facts(journal):
    return [fact async for _, fact in journal.read(FLEET_STREAM)]


# 004-046
async def test_of_two_that_ask_at_once_the_later_one_counts(journal):
    shells = [FleetLog(journal), FleetLog(journal)]

    await asyncio.gather(*(log.record([scale(n)], "user:ada") for n, log in enumerate(shells, 1)))

    *_, last = await facts(journal)
    assert 2 == len(await facts(journal))
    assert {(RUNNERS, Range(last.least, last.most))} == {
        each for log in shells for each in (await log.read()).wanted.items()
    }


async def test_an_append_of_unknown_outcome_is_there_once(journal):
    journal.store.sure = False

    await FleetLog(journal).record([taken(1), scale(2)], "system:dispatcher")

    assert ["FleetTaken", "ScaleAsked"] == [fact.type for fact in await facts(journal)]


# D13, D14
async def test_a_former_dispatcher_records_nothing(journal):
    former, present = FleetLog(journal), FleetLog(journal)
    await former.record([taken(1)], "system:dispatcher")
    await present.record([taken(2)], "system:dispatcher")

    with pytest.raises(FencedError):
        await former.record([RunnerBack(incarnation="r1", epoch=1, at=NOON)], "system:dispatcher")

    assert ["FleetTaken", "FleetTaken"] == [fact.type for fact in await facts(journal)]


async def test_a_number_that_is_wanted_already_is_not_recorded_again(journal):
    await FleetLog(journal).record([scale(2)], "user:ada")

    assert [] == await FleetLog(journal).record([scale(2)], "user:ada")


# 001-001, 001-054: two processes, and one name
async def test_of_two_processes_that_offer_a_name_the_first_one_has_it(tmp_path, popen):
    names = ["lnch_abc123", "lnch_def456"]
    both = [
        popen(
            [sys.executable, "-m", "tests.actors.registering", str(tmp_path / "log.db"), each, "w"],
            cwd=ROOT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for each in names
    ]
    assert ["ready\n"] * 2 == [each.stdout.readline() for each in both]

    for each in both:
        each.stdin.write("go\n")
        each.stdin.flush()
    said = [each.communicate(timeout=PATIENCE_SECONDS)[0] for each in both]

    (first,) = [name for name, each in zip(names, said, strict=True) if each == "registered\n"]
    refused = f"Agent 'w' is already registered by runner '{first}'\n"
    assert {"registered\n", refused} == set(said)
    async with open_log(tmp_path / "log.db") as log:
        state = await FleetLog(log.journal()).read()
        assert [first] == list(state.runners)
        assert first == state.online("w")
