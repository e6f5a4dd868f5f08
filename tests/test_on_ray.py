"""Who comes to a log that a `cueline up` has: it is attached to, and no Ray is started."""

import asyncio
from dataclasses import replace

import pytest

from cueline.actors.presence import presence_of
from cueline.cluster import connection
from cueline.errors import ClusterError
from cueline.events.snapshot import NO_SNAPSHOTS, SnapshotRow
from cueline.runtime.actor_factory import actor_factory_of
from cueline.runtime.on_ray import ANSWER_SECONDS, on_ray
from cueline.runtime.open_log import open_log
from cueline.runtime.up_record import UpRecord
from cueline.testing.clock import FakeClock


@pytest.fixture
async def log(tmp_path):
    """A log that this process keeps an `up` of, by the note beside it."""
    async with open_log(tmp_path / "log.db") as opened:
        keeper = presence_of("up")
        UpRecord(address="a:1", namespace="n", version="1", keeper=keeper).write(opened.url)
        yield opened


async def attach(log, address=None):
    async with on_ray(log, scope=set(), address=address, on_trouble=print) as there:
        return there


async def test_an_up_is_attached_to_whatever_the_environment_says(log, monkeypatch):
    monkeypatch.setenv("RAY_ADDRESS", "b:2")
    await log.board.beat(presence_of("dispatcher"))

    there = await attach(log)

    assert (False, False) == (there.drives, there.has("host-1"))


async def test_another_cluster_than_that_of_the_up_is_refused(log):
    with pytest.raises(ClusterError, match="b:2: this log is driven by `cueline up` at a:1"):
        await attach(log, "b:2")


async def test_an_empty_address_is_none(tmp_path, monkeypatch):
    def connected(address, _):
        raise ClusterError("asked for", str(address))

    monkeypatch.setenv("RAY_ADDRESS", "")
    monkeypatch.setattr(connection, "connect_ray", connected)

    async with open_log(tmp_path / "log.db") as log:
        with pytest.raises(ClusterError, match="asked for: None"):
            await attach(log)


async def test_an_up_that_does_not_answer_is_waited_for_so_long_and_refused(log):
    clock = FakeClock()
    attaching = asyncio.create_task(attach(replace(log, clock=clock)))
    await clock.advance(ANSWER_SECONDS - 1)
    assert not attaching.done()

    await clock.advance(2)

    with pytest.raises(ClusterError, match="does not answer: `cueline down` ends it"):
        await attaching


async def test_a_host_has_the_snapshots_where_the_log_is_and_goes_without_elsewhere(log):
    here = actor_factory_of(log)
    elsewhere = replace(here, machine="another")
    await log.snapshots.keep("s", SnapshotRow(1, b"kept", b"", 0, ["s"]))

    assert b"kept" == await here.journal(log.store).snapshots.newest("s")
    assert elsewhere.journal(log.store).snapshots is NO_SNAPSHOTS
