"""Runs of blueprints on a real cluster, whose runner is killed or retired."""

import asyncio
import os
import signal
from contextlib import suppress
from dataclasses import replace

import pytest

from cueline.actors.presence import presence_of
from cueline.actors.session_tree import read_start_request
from cueline.agents.agent import Agent
from cueline.agents.preflight import agent_to_record
from cueline.client.client import Client
from cueline.clock import SystemClock
from cueline.cluster.dispatcher import DispatcherSettings
from cueline.cluster.up import Up
from cueline.deciders.heartbeat import HeartbeatTimes
from cueline.events.fleet import FLEET_STREAM
from cueline.events.start import DISCONNECTED
from cueline.events.stream import session_stream
from cueline.runtime.actor_factory import actor_factory_of, namespace_of
from cueline.runtime.place import Place
from cueline.testing.wait import PATIENCE_SECONDS

SCRIPT = """
[[reply]]
text = "I act."
calls = [{ name = "undeclared" }]

[[reply]]
text = "Done."
"""
LEAD = """
[[reply]]
text = "I delegate."
calls = [{ name = "worker", arguments = { goal = "go", mode = "async_callback" } }]

[[reply]]
text = "I wait."

[[reply]]
text = "I was told."
"""


async def until(holds):
    clock = SystemClock()
    async with asyncio.timeout(PATIENCE_SECONDS):
        while not (found := await holds()):
            await clock.sleep(0.1)
    return found


def lead_of(world):
    """Return an agent that starts a run, and is told of its end."""
    script = world.folder / "lead-script.toml"
    script.write_text(LEAD)
    tools = ["blueprint:worker"]
    return Agent(name="lead", provider="scripted", model=str(script), tools=tools)


# 001-001, 001-011, 001-052, 001-045, 001-050, 001-051, 001-055, 001-056
async def test_a_run_ends_with_its_killed_runner_and_its_retry_with_a_retired_one(world_of):
    async with world_of() as world:
        agent = agent_to_record(world.agent(SCRIPT, ["undeclared"], policy={"approval": ["off"]}))
        factory = actor_factory_of(world.log)
        kept = Up(world.cluster, namespace_of(factory.log_id), factory, presence_of("up"))
        client = Client(world.log, Place(world.log.url))

        async def offered():
            return [each for each in await client.blueprints() if each.status == "online"]

        async def owner():
            (runner,) = [each for each in await client.runners() if each.blueprints]
            return runner

        async def in_state(status):
            runs = await client.runs(limit=1)
            return [each for each in runs if each.status == status]

        try:
            await kept.start(DispatcherSettings(blueprints=(agent,)))
            await until(offered)
            lead = await client.start(lead_of(world), "go")
            await world.begun()
            os.kill((await owner()).pid, signal.SIGKILL)
            told = await lead.result()
            (failed,) = await until(lambda: in_state("failed"))
            runner = (await until(offered))[0].runner

            second = await client.retry(failed.id)
            asked = await read_start_request(world.log.journal(), session_stream(second.id))
            world.let_go()
            (done,) = await until(lambda: in_state("completed"))
        finally:
            await kept.stop()

        assert (DISCONNECTED, "runner_disconnected") == (failed.error, failed.error_kind)
        assert failed.runner != runner == done.runner
        assert (failed.id, f"session-default/{failed.id}") == (done.retry_of, asked.run.retry_of)
        assert ("I was told.", f"{lead.id}.1.0") == (told.text, failed.id)
        assert ([], "offline") == (await client.runners(), (await client.blueprints())[0].status)


# 001-053, 001-004, 001-008
@pytest.mark.long
async def test_a_frozen_runner_is_stale_then_removed_and_its_run_has_failed(world_of):
    async with world_of() as world:
        agent = agent_to_record(world.agent(SCRIPT, ["undeclared"], policy={"approval": ["off"]}))
        factory = replace(actor_factory_of(world.log), removal_seconds=20)
        kept = Up(world.cluster, namespace_of(factory.log_id), factory, presence_of("up"))
        client = Client(world.log, Place(world.log.url))

        async def in_state(status):
            return [each for each in await client.blueprints() if each.status == status]

        async def ended():
            return [each for each in await client.runs(limit=1) if each.error_kind]

        try:
            times = HeartbeatTimes(interval=0.5, stale=5, removal=factory.removal_seconds)
            await kept.start(DispatcherSettings(blueprints=(agent,), heartbeat=times))
            await until(lambda: in_state("online"))
            await client.submit("worker", "go")
            await world.begun()
            (frozen,) = [each for each in await client.runners() if each.blueprints]
            os.kill(frozen.pid, signal.SIGSTOP)
            await until(lambda: in_state("stale"))
            before = await ended()
            (failed,) = await until(ended)
        finally:
            world.let_go()
            await kept.stop()
            with suppress(ProcessLookupError):
                os.kill(frozen.pid, signal.SIGKILL)

        assert [] == before
        assert (DISCONNECTED, "runner_disconnected") == (failed.error, failed.error_kind)
        changes = [type(each).__name__ for each in await world.facts(FLEET_STREAM)]
        assert changes.index("RunnerStale") < changes.index("RunnerRemoved")


async def test_one_run_goes_on_at_a_time_and_a_series_of_them_has_each_time_once(world_of):
    async with world_of() as world:
        said = 'reply = [{ text = "Done.", delay_seconds = 0.5 }]'
        agent = agent_to_record(world.agent(said, max_running=1))
        factory = actor_factory_of(world.log)
        kept = Up(world.cluster, namespace_of(factory.log_id), factory, presence_of("up"))
        client = Client(world.log, Place(world.log.url))

        async def offered():
            return [each for each in await client.blueprints() if each.status == "online"]

        async def ended():
            return [each for each in await client.runs() if each.status == "completed"]

        async def all_ended():
            return len(await ended()) >= 5

        try:
            await kept.start(DispatcherSettings(blueprints=(agent,)))
            (blueprint,) = await until(offered)
            begun = [await client.submit(blueprint.name, "go") for _ in range(3)]
            series = await client.submit(blueprint.name, "go", every=2)
            await until(all_ended)
        finally:
            await kept.stop()

        ids = [each.id for each in await client.runs()]
        facts = [
            (recorded.stream, recorded.type)
            async for recorded, _ in world.log.journal().read_all(categories={"session"})
        ]
        turns = [each for each in facts if each[1] in ("RunClaimed", "SessionCompleted")]
        assert [s for s, _ in turns[::2]] == [s for s, _ in turns[1::2]][: len(turns[::2])]
        assert {"RunClaimed"} == {type_ for _, type_ in turns[::2]}
        assert [each.stream_name for each in begun] == [stream for stream, _ in turns[:6:2]]
        assert len([each for each in ids if each.startswith(f"{series.id}.")]) >= 1
