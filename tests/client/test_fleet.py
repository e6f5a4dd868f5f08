"""The wish for another number of workers, and what there is, without a cluster."""

from dataclasses import replace

import pytest

from cueline.actors.fleet_log import FleetLog
from cueline.actors.presence import presence_of
from cueline.client.client import Client
from cueline.client.fleet import MOST
from cueline.deciders.fleet import TakeFleet
from cueline.errors import ConfigError
from cueline.events.fleet import (
    FleetTaken,
    HostJoined,
    NodeDraining,
    RunnerBack,
    RunnerRegistered,
    RunnerRemoved,
    RunnerStale,
    WorkerGroup,
    WorkersPending,
)
from cueline.runtime.open_log import open_log
from cueline.runtime.place import Place
from cueline.testing.clock import NOON

PLAIN = WorkerGroup(kind="runner")
HERE = {"node": "n1", "machine": "m1", "pid": 42, "epoch": 1, "at": NOON}


@pytest.fixture
async def client(tmp_path):
    async with open_log(tmp_path / "log.db") as log:
        yield Client(log, Place(log.url))


async def record(client, *facts):
    await FleetLog(client.log.journal()).record(
        [TakeFleet(FleetTaken(epoch=1, up="up-1", at=NOON)), *facts], "system:dispatcher"
    )


async def beating(client, role):
    presence = presence_of(role)
    await client.log.board.beat(presence)
    return presence.incarnation


def registered(incarnation):
    return RunnerRegistered(incarnation=incarnation, group=PLAIN, **HERE)


async def test_a_number_counts_for_one_group_and_while_nothing_runs(client):
    await client.scale(runners=8, hosts=2)
    receipt = await client.scale(runners=(0, 4), labels={"zone": "b"}, resources={"gpus": 1})

    told = [(g.kind, g.least, g.most, dict(g.labels)) for g in receipt.groups]
    assert [("host", 2, 2, {}), ("runner", 8, 8, {}), ("runner", 0, 4, {"zone": "b"})] == told
    assert (True, False) == (receipt.recorded, receipt.up)


async def test_a_number_that_is_wanted_already_is_not_recorded_again(client):
    await client.scale(runners=8)

    assert not (await client.scale(runners=8)).recorded


async def test_a_group_of_none_is_not_wanted_any_more(client):
    await client.scale(runners=8)

    assert () == (await client.scale(runners=0)).groups


@pytest.mark.parametrize(
    ("wish", "said"),
    [
        ({}, "name a number of `hosts` or of `runners`"),
        ({"runners": -1}, r"runners: -1\.\.-1 is no range"),
        ({"hosts": (0, 2)}, r"hosts: 0\.\.2 begins at 0"),
        ({"hosts": (4, 2)}, r"hosts: 4\.\.2 is no range"),
        ({"runners": MOST + 1}, "1001 is more than 1000"),
        ({"runners": 1, "per_node": 0}, "per_node: 0 is less than 1"),
        ({"runners": 1, "labels": {"zone": "!b"}}, "'!b' is not a name"),
        ({"runners": 1, "resources": {"cpus": 0}}, "cpus is 0, and Ray counts from 0.0001"),
        ({"runners": 1, "resources": {"GPU": 1}}, "GPU is called gpus here"),
    ],
)
async def test_a_number_that_cannot_be_is_refused_and_not_recorded(client, wish, said):
    with pytest.raises(ConfigError, match=said):
        await client.scale(**wish)

    assert () == (await client.fleet()).groups


# D13, D14
async def test_the_fleet_is_what_the_present_dispatcher_recorded_and_what_beats(client):
    await beating(client, "dispatcher")
    [host, runner] = [await beating(client, role) for role in ("host", "runner")]
    joined = HostJoined(incarnation=host, group=WorkerGroup(kind="host"), **HERE)
    await record(client, joined, registered(runner), registered("runner-gone"))
    await client.scale(runners=2)

    fleet = await client.fleet()

    assert [(host, "online"), (runner, "online")] == [
        (w.incarnation, w.status) for w in fleet.workers
    ]
    assert [(2, 1, 0)] == [(g.most, g.running, g.pending) for g in fleet.groups]
    assert [("n1", 1, 1, False)] == [(n.node, n.hosts, n.runners, n.draining) for n in fleet.nodes]


async def test_a_stale_runner_is_shown_until_it_is_back_or_removed(client):
    await beating(client, "dispatcher")
    runner = await beating(client, "runner")
    stale = RunnerStale(incarnation=runner, reason="silent", removed_at=NOON, epoch=1, at=NOON)
    back = RunnerBack(incarnation=runner, epoch=1, at=NOON)
    removed = RunnerRemoved(incarnation=runner, reason="it ended", epoch=1, at=NOON)
    shown = []
    await record(client, registered(runner))
    for fact in (stale, back, removed):
        await FleetLog(client.log.journal()).record([fact], "system:dispatcher")
        shown.append([each.status for each in (await client.fleet()).workers])

    assert [["stale"], ["online"], []] == shown


async def test_a_runner_that_does_not_live_is_stale_before_that_is_recorded(client):
    await beating(client, "dispatcher")
    ended = replace(presence_of("runner"), process_started=0)
    await client.log.board.beat(ended)
    await record(client, registered(ended.incarnation))

    assert ["stale"] == [each.status for each in (await client.fleet()).workers]


async def test_pending_workers_and_draining_nodes_are_shown_while_a_dispatcher_lives(client):
    await client.scale(runners=4)
    await record(
        client,
        registered(await beating(client, "runner")),
        NodeDraining(node="n1", epoch=1, at=NOON),
        WorkersPending(group=PLAIN, count=3, epoch=1, at=NOON),
    )
    before = await client.fleet()
    await beating(client, "dispatcher")
    fleet = await client.fleet()

    assert (0, 3) == (before.groups[0].pending, fleet.groups[0].pending)
    assert (False, True) == (before.up, fleet.up)
    assert fleet.nodes[0].draining


async def test_the_workers_of_a_former_dispatcher_are_not_shown(client):
    runner = await beating(client, "runner")
    await record(client, registered(runner))
    taken = TakeFleet(FleetTaken(epoch=2, up="up-2", at=NOON))
    await FleetLog(client.log.journal()).record([taken], "system:dispatcher")

    assert () == (await client.fleet()).workers


async def test_nothing_waits_for_a_runner_of_an_empty_log(client):
    fleet = await client.fleet()

    assert ((), 0, False) == (fleet.waits, fleet.undriven, fleet.up)
