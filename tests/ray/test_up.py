"""One dispatcher a log. These start a dispatcher of `cueline up` on the tests' own cluster."""

import asyncio
import os
import signal
from contextlib import asynccontextmanager, suppress
from dataclasses import replace
from pathlib import Path

import httpx2
import pytest
import ray

from cueline.actors.presence import living, presence_of
from cueline.cli.up import keeper_command
from cueline.client.client import open_client
from cueline.client.server_address import server_of
from cueline.client.tokens import issue_token
from cueline.client.verify import verify_log
from cueline.clock import SystemClock
from cueline.cluster.cluster_context import VERSION
from cueline.cluster.dispatcher import DispatcherActor, DispatcherSettings
from cueline.cluster.ray_call import DEAD, DISPATCHER, UNCLEAR, call
from cueline.cluster.up import Up
from cueline.config.settings import SealSettings
from cueline.errors import ClusterError
from cueline.events.fleet import FLEET_STREAM
from cueline.providers.seal_key import seal_key
from cueline.runtime.actor_factory import actor_factory_of, namespace_of
from cueline.runtime.inline import inline
from cueline.testing.wait import PATIENCE_SECONDS, await_answer, await_until

SCRIPT = """
[[reply]]
text = "I act."
calls = [{ name = "repeatable" }]

[[reply]]
text = "Done."
"""


@pytest.fixture
async def world(world_of):
    async with world_of() as world:
        yield world


def up_of(world, keeper=None, seal=None):
    factory = actor_factory_of(replace(world.log, seal=seal))
    return Up(world.cluster, namespace_of(factory.log_id), factory, keeper or presence_of("up"))


@asynccontextmanager
async def up(world, keeper=None, seal=None, **wanted):
    kept = up_of(world, keeper, seal)
    try:
        yield kept, await kept.start(DispatcherSettings(**wanted))
    finally:
        await kept.stop()


@asynccontextmanager
async def here(world, scope):
    async with inline(world.log, scope=scope, on_trouble=print) as place:
        yield place


async def types_in(world, stream):
    return [fact.type async for _, fact in world.log.journal().read(stream)]


async def test_the_log_is_sealed_by_itself(world, tmp_path):
    key = tmp_path / "my/cueline/seal.key"
    seal_key({"XDG_CONFIG_HOME": str(tmp_path / "my")})
    seals = tmp_path / "seals"
    settings = SealSettings(every_events=1, folder=str(seals), key=str(key))

    async with up(world, seal=settings):
        await await_until(lambda: [*seals.glob("*.txt")])

    checked = await verify_log(world.log, seals)
    assert ((), True) == (checked.bad, checked.seals > 0)


async def test_what_a_killed_process_left_goes_on_by_itself(world):
    await world.ask(SCRIPT, 1, tools=["repeatable"])
    async with here(world, world.streams):
        await world.begun()
    world.let_go()

    async with up(world) as (_, started):
        assert 1 == started.found
        assert "Done." == await world.result()
    assert ["DispatcherStarted", "DispatcherStopped"] == await types_in(world, DISPATCHER)
    begun = ["FleetTaken", "ScaleAsked", "ScaleAsked"]
    joined = {"HostJoined", "RunnerRegistered", "RunnerRemoved"}
    types = await types_in(world, FLEET_STREAM)
    assert (begun, joined) == (types[:3], {*types[3:]})


async def test_what_is_left_alone_is_taken_up_when_somebody_has_a_word_for_it(world):
    await world.ask(SCRIPT, 1, tools=["repeatable"])
    async with here(world, world.streams):
        await world.begun()
    world.let_go()

    async with up(world, recover=False):
        await world.ask(SCRIPT, 1, tools=["repeatable"])
        await world.result(world.streams[1])
        assert 0 == (await world.types())["SessionTakenOver"]
        await world.session.send("go on")
        assert "Done." == await world.result()


async def test_a_session_is_not_left_alone_whose_host_and_dispatcher_died_together(world):
    async with up(world, recover=False) as (kept, first):
        await world.ask(SCRIPT, 1, tools=["repeatable"])
        await world.begun()
        for pid in [first.presence.pid, *await pids(world, "host")]:
            os.kill(pid, signal.SIGKILL)
        world.let_go()

        await started_again(kept, first.epoch)
        assert "Done." == await world.result()


async def test_a_session_that_somebody_drives_is_left_to_them(world):
    await world.ask(SCRIPT, 1, tools=["repeatable"])
    async with here(world, [*world.streams]):
        await world.begun()
        async with up(world) as (_, started):
            await world.ask(SCRIPT, 1, tools=["repeatable"])
            world.let_go()
            await world.result(world.streams[1])
            assert "Done." == await world.result()
    assert (0, 0) == (started.found, (await world.types())["SessionTakenOver"])


async def test_a_second_dispatcher_is_refused_while_the_first_lives(world):
    async with up(world) as (kept, _):
        context = kept._context
        second = context.create(
            DispatcherActor, "second", context, DispatcherSettings(), presence_of("up")
        )

        with pytest.raises(ClusterError, match=r"this log: another `cueline up` has it \(process"):
            await call(second.start.remote(), 60)
        ray.kill(second)


async def test_a_second_up_on_the_same_cluster_is_refused_and_takes_nothing_down(world):
    async with up(world) as (kept, first):
        second = up_of(world)

        with pytest.raises(ClusterError, match=rf"another .* has it \(process {os.getpid()} on"):
            await second.start(DispatcherSettings())
        await second.stop()

        assert first == await call(kept._dispatcher.start.remote(), 20)


async def test_what_a_killed_keeper_left_is_kept_as_the_next_one_wants_it(world):
    gone = replace(presence_of("up"), process_started=1)
    async with up(world, keeper=gone, recover=False) as (_, first):
        await world.ask(SCRIPT, 1, tools=["repeatable"])
        await world.begun()
        before = await pids(world)

        async with up(world, hosts=2) as (_, second):
            await until_grown(world, before)
            world.let_go()
            assert "Done." == await world.result()
    assert (first.epoch + 1, 0) == (second.epoch, second.found)
    assert 1 == len(world.journal_lines())


async def until_grown(world, before):
    """Wait until another host is there, beside whoever was there *before*."""
    clock = SystemClock()
    async with asyncio.timeout(PATIENCE_SECONDS):
        while not before < await pids(world):
            await clock.sleep(0.05)


async def test_a_dispatcher_that_died_comes_back_and_keeps_its_hosts(world):
    await world.ask(SCRIPT, 1, tools=["repeatable"])
    async with up(world) as (kept, first):
        await world.begun()
        before = await pids(world)
        os.kill(first.presence.pid, signal.SIGKILL)
        again = await started_again(kept, first.epoch)
        after = await pids(world)
        world.let_go()

        assert (first.epoch + 1, before) == (again.epoch, after)
        assert "Done." == await world.result()
    assert 1 == len(world.journal_lines())


@pytest.mark.long
async def test_a_frozen_dispatcher_is_replaced(world):
    async with up(world) as (kept, first):
        watching = asyncio.create_task(watch(kept))
        os.kill(first.presence.pid, signal.SIGSTOP)
        world.let_go()
        await world.ask(SCRIPT, 1, tools=["repeatable"])

        assert "Done." == await world.result()
        watching.cancel()


async def watch(kept):
    """Do what the process that keeps `up` does."""
    while True:
        await kept.watch()


async def pids(world, *roles):
    """Return the processes of those *roles*, once all of them are on the board."""
    roles = set(roles or ("host", "runner"))
    clock = SystemClock()
    async with asyncio.timeout(PATIENCE_SECONDS):
        while True:
            there = [p for p in await world.log.board.all() if p.role in roles]
            if {each.role for each in there} == roles:
                return {each.pid for each in there}
            await clock.sleep(0.05)


async def started_again(kept, epoch):
    clock = SystemClock()
    async with asyncio.timeout(PATIENCE_SECONDS):
        while True:
            try:
                started = await call(kept._dispatcher.start.remote(), 20)
            except (*DEAD, *UNCLEAR):
                await clock.sleep(0.05)
                continue
            if started.epoch > epoch:
                return started


async def test_the_server_comes_back_where_it_dies_and_ends_with_up(world, tmp_path):
    words = ["serve", "--json", "--while-stdin", "--port", "0", "--log", str(world.log.url)]
    async with up(world) as (kept, _):
        url = await kept.serve(keeper_command(words), str(tmp_path))
        assert url == await server_of(world.log)
        first = await server_but(world, ())
        os.kill(first, signal.SIGKILL)
        second = await server_but(world, {first})
        held = asyncio.create_task(follow(world))  # it keeps the old server for some seconds
        await await_until(held_open.is_set)
        name = f"up/server@{VERSION}"
        ray.kill(ray.get_actor(name, kept.namespace), no_restart=False)
        third = await server_but(world, {first, second})

    await await_until(lambda: not runs(third))
    await asyncio.wait((held,))


held_open = asyncio.Event()


async def follow(world):
    """Follow the events of the server until it ends."""
    async with open_client(world.log.url) as client:
        token = (await issue_token(client, "ada", scopes=["read"])).text
    url = await server_of(world.log)
    headers = {"Authorization": f"Bearer {token}"}
    with suppress(httpx2.HTTPError):
        async with (
            httpx2.AsyncClient(base_url=url, headers=headers, timeout=None) as http,
            http.stream("GET", "/v1/events") as answer,
        ):
            held_open.set()
            async for _ in answer.aiter_lines():
                pass


async def server_but(world, pids):
    """Return the pid of a server that is none of *pids*, as soon as there is one."""

    async def ask():
        present = await living(world.log.board, world.log.clock.now())
        return next((p.pid for p in present if p.role == "server" and p.pid not in pids), None)

    return await await_answer(ask)


def runs(pid):
    return Path(f"/proc/{pid}").exists()
