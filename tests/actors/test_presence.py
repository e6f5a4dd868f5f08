"""Who lives: what a process says of itself, and what its own machine says."""

import asyncio
import os
import subprocess
import sys
from dataclasses import replace
from datetime import timedelta

import pytest

from cueline.actors.presence import (
    BEAT_SECONDS,
    SILENCE_SECONDS,
    _started,
    beat_always,
    death_of,
    evidence_of_end,
    find,
    machine_name,
    presence_of,
)
from cueline.clock import SystemClock
from cueline.errors import LogUnavailableError
from cueline.events.store import to_us
from cueline.stores.presence import MemoryPresence
from cueline.testing.clock import FakeClock

NOW = SystemClock().now()
HERE = replace(presence_of("host"), beat_us=to_us(NOW))
LATER = NOW + timedelta(seconds=SILENCE_SECONDS + 1)


def test_every_incarnation_has_a_name_of_its_own():
    assert presence_of("host").incarnation != presence_of("host").incarnation


def test_a_process_that_beats_lives():
    assert death_of(HERE, NOW) is None


def test_a_silent_process_may_be_frozen_and_counts_as_dead():
    # I3: as an owner; for what it started, only its end counts.
    assert "is silent for 11 s" in death_of(HERE, LATER)
    assert evidence_of_end(HERE) is None


def test_an_ended_process_is_dead_by_its_machines_evidence():
    with subprocess.Popen([sys.executable, "-c", ""]) as process:
        process.wait()
        gone = replace(HERE, pid=process.pid)

    assert f"process {process.pid} on {machine_name()} has ended" == evidence_of_end(gone)
    assert evidence_of_end(gone) == death_of(gone, NOW)


def test_a_zombie_process_counts_as_dead():
    with subprocess.Popen([sys.executable, "-c", ""], stdout=subprocess.PIPE) as process:
        living = replace(HERE, pid=process.pid, process_started=_started(process.pid))
        process.stdout.read()
        os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)

        assert evidence_of_end(living) is not None


def test_a_pid_that_is_used_again_is_another_process():
    assert evidence_of_end(replace(HERE, process_started=HERE.process_started - 1)) is not None


@pytest.mark.parametrize("elsewhere", [{"boot_id": "other"}, {"pid_namespace": "pid:[1]"}])
def test_of_another_machine_only_its_silence_is_known(elsewhere):
    far = replace(HERE, pid=1, process_started=0, **elsewhere)

    assert evidence_of_end(far) is None
    assert death_of(far, NOW) is None
    assert "is silent" in death_of(far, LATER)


def test_a_presence_is_found_by_its_incarnation():
    assert HERE is find([HERE], HERE.incarnation)
    assert find([HERE], None) is None


def test_a_machine_can_be_given_a_name(monkeypatch):
    monkeypatch.setenv("CUELINE_MACHINE", "rack-7")

    assert "rack-7" == presence_of("host").machine


@pytest.mark.parametrize("error", [LogUnavailableError("presence", "locked"), OSError("a bug")])
async def test_a_beat_that_fails_is_not_the_last(error):
    # Others would take the sessions of a process that lives.
    clock, beats = FakeClock(), []

    class Board(MemoryPresence):
        async def beat(self, presence):
            beats.append(presence)
            raise error

    beating = asyncio.create_task(beat_always(Board(clock), presence_of("host"), clock))
    await clock.advance(BEAT_SECONDS)

    assert 2 == len(beats)
    beating.cancel()
