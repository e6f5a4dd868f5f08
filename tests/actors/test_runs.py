"""Runs, as the dispatcher's registry and the hosts have them: queued, claimed, told of the end."""

import asyncio
from dataclasses import replace
from datetime import timedelta

import pytest

from cueline.actors.fleet_log import FleetLog
from cueline.actors.presence import presence_of
from cueline.actors.runner_registry import RUNNER, RunnerRegistry
from cueline.deciders.heartbeat import HeartbeatTimes
from cueline.events.fleet import (
    FleetTaken,
    RunnerRegistered,
    RunnerRemoved,
    WorkerGroup,
)
from cueline.events.inbox import ChildEnded
from cueline.events.session import (
    MessageReceived,
    RunClaimed,
    SessionFailed,
    ToolSkipped,
    ToolStarted,
)
from cueline.events.start import DISCONNECTED, NO_RUNNER, ChildCall, Run
from cueline.events.store import to_us
from cueline.events.stream import sibling
from cueline.testing.fakes import FoldedIndex, asks_for, says
from cueline.tools.catalogue import blueprint_tool
from tests.actors.session_harness import SESSION, TOOLS, SessionHarness, Valve
from tests.crash.delegation import TreeModel

PARENT = "session-default/p"
CRAWL = Run(blueprint="tester")
PRESENCE = presence_of("runner")


class Fleet:
    """A dispatcher's registry on a fake clock, and the heartbeats that it hears."""

    def __init__(self, scene, *, epoch=1):
        journal = scene.outside.journal
        self.clock = scene.clock
        self.began = self.clock.now()
        self.log = FleetLog(journal)
        self.epoch = epoch
        self.beats = {}
        self.worlds = []
        self.registry = RunnerRegistry(
            journal,
            self.log,
            FoldedIndex(journal),
            epoch=epoch,
            since=self.began,
            times=HeartbeatTimes(),
            offer=[scene.agent],
        )

    async def take(self):
        now = self.clock.now()
        await self.log.record([FleetTaken(epoch=self.epoch, up="up-1", at=now)], "system")
        return self

    async def register(self, incarnation):
        self.beat(incarnation)
        await self.registry.record(
            [
                RunnerRegistered(
                    incarnation=incarnation,
                    runner=RUNNER,
                    group=WorkerGroup(kind="runner"),
                    machine="m1",
                    node="n1",
                    pid=7,
                    epoch=self.epoch,
                    at=self.clock.now(),
                )
            ]
        )

    async def remove(self, incarnation, reason="Ray reports the exit of its process", **fields):
        now = self.clock.now()
        gone = RunnerRemoved(
            incarnation=incarnation, reason=reason, epoch=self.epoch, at=now, **fields
        )
        await self.registry.record([gone])

    def beat(self, incarnation):
        self.beats[incarnation] = self.clock.now()

    async def tick(self, *without):
        present = [
            replace(PRESENCE, incarnation=name, boot_id="elsewhere", beat_us=to_us(at))
            for name, at in self.beats.items()
            if name not in without
        ]
        await self.registry.tick(present, self.clock.now())
        await self.look()

    async def world(self, scene, name):
        """Bring a process to life whose host drives the sessions, with a runner of that name."""
        self.worlds.append(await scene.world(name=name))
        return self.worlds[-1]

    async def look(self):
        for world in self.worlds:
            if not world.life.dead:
                looking = asyncio.create_task(world.dispatcher.tick())
                await self.clock.settle()
                await looking

    async def until(self, seconds):
        """Let the time come that is *seconds* after the start."""
        at = self.began + timedelta(seconds=seconds)
        await self.clock.advance((at - self.clock.now()).total_seconds())
        await self.look()


async def scene_of(*replies, **options):
    """Return a scene, and its fleet, without a runner."""
    scene = SessionHarness(replies or (says("done"),), **options)
    fleet = await Fleet(scene).take()
    return scene, fleet


async def start_child(scene, **run):
    """Start a run as an asynchronous child of a session that rests."""
    await scene.outside.start("p", scene.agent, goal=None)
    call = ChildCall(effect="1.0", mode="async_callback", parameters={"goal": "crawl"})
    fields = {"call": call, "parent": PARENT, "root": PARENT}
    await scene.outside.start("s", scene.agent, run=CRAWL, **fields)
    await scene.clock.settle()


async def whole_log(scene):
    """Return the events of the whole log, in order."""
    found = []
    async for recorded in scene.outside.store.read_all():
        category = recorded.stream.partition("-")[0]
        found.append(f"{category} {recorded.type}")
    return found


async def ended(scene):
    (failed,) = [f for f in await scene.outside.facts(SESSION) if isinstance(f, SessionFailed)]
    return failed.kind, failed.message


# 001-042, 001-053
async def test_the_timeline_of_a_runner_that_falls_silent():
    scene, fleet = await scene_of(asks_for(("pay", {})), act=Valve())
    await fleet.world(scene, "r1")
    await fleet.register("r1")
    await start_child(scene)
    for seconds in (30, 60):
        await fleet.until(seconds)
        fleet.beat("r1")
        await fleet.tick()

    fleet.began = fleet.clock.now()  # the last heartbeat
    begun, timeline = len(await whole_log(scene)), {}
    for seconds in (30, 119, 120, 240, 599, 600, 605):
        await fleet.until(seconds)
        await fleet.tick()
        log = await whole_log(scene)
        if log[begun:]:
            timeline[seconds] = log[begun:]
        begun = len(log)

    assert {
        120: ["fleet RunnerStale"],
        600: ["fleet RunnerRemoved", "inbox RunnerGone", "session MessageReceived"],
        605: [  # what was running has had its grace
            "session ToolInDoubt",
            "session SessionFailed",
            "inbox ChildEnded",
            "session MessageReceived",
            "session ModelRequested",
            "session ModelStarted",
            "session ModelReplied",
            "session ToolStarted",
        ],
    } == timeline


# 001-010, 001-022, 001-023, 001-024, 001-046, 001-047, 001-055, 001-057
async def test_the_parent_of_an_asynchronous_run_is_told_that_its_runner_is_gone():
    scene, fleet = await scene_of(asks_for(("pay", {})), act=Valve())
    await fleet.world(scene, "r1")
    await fleet.register("r1")
    await start_child(scene)

    await fleet.remove("r1")
    await fleet.until(10)

    (told,) = [
        fact.message
        for fact in await scene.outside.facts(PARENT)
        if isinstance(fact, MessageReceived) and isinstance(fact.message, ChildEnded)
    ]
    assert ("failed", "runner_disconnected", DISCONNECTED) == (
        told.status,
        told.error_code,
        told.error,
    )
    assert ({"goal": "crawl"}, 1, True) == (
        told.original_parameters,
        told.attempt,
        told.side_effects_possible,
    )
    assert any(b"runner_disconnected" in said for said in await scene.outside.transcript(PARENT))


# 001-039, 001-040, 001-044, D18
async def test_the_parent_is_told_of_a_run_that_nobody_claimed():
    scene, fleet = await scene_of()
    await fleet.world(scene, "r1")
    await start_child(scene)

    await fleet.until(299)
    assert "SessionFailed" not in await scene.types()
    await fleet.until(301)

    assert ("no_matching_runner", NO_RUNNER) == await ended(scene)
    assert "ModelReplied" in await scene.outside.types(PARENT)


async def test_a_run_begins_as_soon_as_a_runner_offers_its_blueprint():
    scene, fleet = await scene_of()
    await fleet.world(scene, "r1")
    await scene.outside.start("s", scene.agent, run=CRAWL)
    await scene.clock.settle()
    before = await scene.types()

    await fleet.register("r1")
    await scene.clock.settle()

    assert ["SessionStarted", "SessionContinued", "SessionWaiting"] == before
    assert "SessionCompleted" == (await scene.types())[-1]


# C30
async def test_the_calls_of_a_run_go_to_the_runner_that_claimed_it():
    scene, fleet = await scene_of(asks_for(("read", {})), says("done"))
    await fleet.world(scene, "r0")
    await fleet.world(scene, "r1")
    await fleet.register("r1")

    await scene.outside.start("s", scene.agent, run=CRAWL)
    await scene.clock.settle()

    assert "r1" == (await scene.last(ToolStarted)).runner


# C32
async def test_a_run_waits_for_a_stale_runner_longer_than_for_none():
    scene, fleet = await scene_of()
    await fleet.world(scene, "r1")
    await fleet.register("r1")
    await fleet.until(120)
    await fleet.tick()
    await scene.outside.start("s", scene.agent, run=CRAWL)

    await fleet.until(430)
    waits = ["SessionContinued", "SessionWaiting"]
    assert ["SessionStarted", *waits, *waits] == await scene.types()
    fleet.beat("r1")
    await fleet.tick()

    assert "SessionCompleted" == (await scene.types())[-1]


async def test_a_run_of_a_stale_runner_fails_when_that_would_be_removed():
    scene, fleet = await scene_of()
    await fleet.world(scene, "r1")
    await fleet.register("r1")
    await fleet.until(120)
    await fleet.tick()
    await scene.outside.start("s", scene.agent, run=CRAWL)

    await fleet.until(601)

    assert ("no_matching_runner", NO_RUNNER) == await ended(scene)


# 001-056
async def test_a_run_goes_on_with_another_runner_after_a_graceful_leave():
    valve = Valve()
    scene, fleet = await scene_of(asks_for(("save", {})), says("done"), act=valve)
    first = await fleet.world(scene, "r1")
    await fleet.register("r1")
    await scene.outside.start("s", scene.agent, run=CRAWL)
    await scene.clock.settle()
    await first.kill()

    await fleet.remove("r1", "it was retired", graceful=True)
    valve.opened.set()
    await fleet.world(scene, "r2")
    await fleet.register("r2")
    await fleet.until(60)

    facts = await scene.outside.facts(SESSION)
    assert ["r1", "r2"] == [each.runner for each in facts if isinstance(each, RunClaimed)]
    assert "SessionCompleted" == facts[-1].type


# 001-055: a model starts a run, and is told of its end.
async def test_a_model_is_told_that_the_runner_of_its_run_is_gone():
    valve = Valve()
    scene, fleet = await scene_of(act=valve, tools=(*TOOLS, blueprint_tool("tester")))
    run = f"{SESSION}.1.0"
    asks = asks_for(("tester", {"goal": "crawl", "mode": "async_callback"}))
    replies = {SESSION: [asks, says("I wait."), says("Noted.")], run: [asks_for(("pay", {}))]}
    scene.outside.model = TreeModel(replies)
    await fleet.world(scene, "r1")
    await fleet.register("r1")
    await scene.outside.start("s", scene.agent)
    await scene.clock.settle()

    state = await scene.outside.state(run)
    await fleet.remove("r1")
    await fleet.until(10)

    assert ("tester", "r1") == (state.run.blueprint, state.run.runner)
    assert "SessionCompleted" == (await scene.types())[-1]
    told = [m for m in await scene.outside.transcript(SESSION) if b"runner_disconnected" in m]
    assert 1 == len(told)
    assert b'"goal":"crawl"' in told[0].replace(b'\\"', b'"').replace(b": ", b":")


async def test_a_run_of_a_blueprint_that_nobody_offered_is_not_started():
    scene, fleet = await scene_of(
        asks_for(("crawler", {"goal": "go"})),
        says("Well."),
        tools=(*TOOLS, blueprint_tool("crawler")),
    )
    await fleet.world(scene, "r1")
    await scene.outside.start("s", scene.agent)
    await scene.clock.settle()

    assert (
        "no runner has ever offered the blueprint crawler" == (await scene.last(ToolSkipped)).reason
    )
    assert "SessionCompleted" == (await scene.types())[-1]


@pytest.mark.parametrize(
    ("given", "said", "child"),
    [({"year": 2026}, "", {"year": 2026}), ({"year": "soon"}, "They must fit: the schema", None)],
)
async def test_the_parameters_of_a_run_are_checked_before_it_is_started(given, said, child):
    tools = (*TOOLS, blueprint_tool("tester"))
    scene, fleet = await scene_of(tools=tools, parameters_schema={"required": ["year"]})
    run = f"{SESSION}.1.0"
    asks = asks_for(("tester", {"goal": "report", "parameters": given}))
    scene.outside.model = TreeModel({SESSION: [asks, says("Done.")], run: [says("Reported.")]})
    scene.outside.check_call = check_year
    await fleet.world(scene, "r1")
    await fleet.register("r1")
    await scene.outside.start("s", scene.agent)
    await scene.clock.settle()

    skipped = [f.reason for f in await scene.outside.facts(SESSION) if isinstance(f, ToolSkipped)]
    inbox = await scene.outside.facts(sibling(run, "inbox"))
    assert ([said] if said else []) == skipped
    assert child == (inbox[0].parameters if inbox else None)
    assert "SessionCompleted" == (await scene.types())[-1]


def check_year(spec, arguments):
    """Stand for the check of the schema."""
    if "required" in spec.parameters and arguments.get("year") == "soon":
        return "They must fit: the schema"
    return None


# 001-012, 001-043
async def test_another_runner_offers_the_blueprints_of_one_that_is_gone():
    _, fleet = await scene_of()
    await fleet.register("r1")
    await fleet.register("r2")
    assert "r1" == (await fleet.log.read()).online("tester")

    await fleet.remove("r1")

    assert "r2" == (await fleet.log.read()).online("tester")


# C28, D14, D20
async def test_a_restarted_dispatcher_gives_up_what_a_former_one_has_left():
    scene, fleet = await scene_of(asks_for(("read", {})), act=Valve())
    world = await fleet.world(scene, "r1")
    await fleet.register("r1")
    await scene.outside.start("s", scene.agent, run=CRAWL)
    await scene.clock.settle()
    await world.kill()

    second = await Fleet(scene, epoch=2).take()
    second.beats = fleet.beats
    await second.tick()
    assert "r1" == (await second.log.read()).online("tester")
    await second.tick("r1")
    await fleet.world(scene, "r2")
    await second.until(30)

    assert ("runner_disconnected", DISCONNECTED) == await ended(scene)
    assert 1 == (await whole_log(scene)).count("inbox RunnerGone")


# 001-003, 001-020: each look repeats it without harm.
async def test_a_run_that_was_claimed_during_the_removal_is_told_by_the_next_look():
    scene, fleet = await scene_of(asks_for(("read", {})), act=Valve())
    await fleet.world(scene, "r1")
    await fleet.register("r1")
    await scene.outside.start("s", scene.agent, run=CRAWL)
    await scene.clock.settle()
    now = fleet.clock.now()
    gone = RunnerRemoved(incarnation="r1", reason="killed", epoch=1, at=now)
    await fleet.log.record([gone], "system")  # without the message

    await fleet.tick()
    await fleet.tick()
    await fleet.until(10)

    assert ("runner_disconnected", DISCONNECTED) == await ended(scene)
    assert 1 == (await whole_log(scene)).count("inbox RunnerGone")


# 001-056
async def test_an_up_that_ends_leaves_with_all_its_runners():
    scene, fleet = await scene_of(asks_for(("save", {})), act=Valve())
    world = await fleet.world(scene, "r1")
    await fleet.register("r1")
    await scene.outside.start("s", scene.agent, run=CRAWL)
    await scene.clock.settle()
    await world.kill()

    await fleet.registry.leave(fleet.clock.now())
    await fleet.until(1000)
    await fleet.world(scene, "r2")

    assert {} == dict((await fleet.log.read()).runners)
    state = await scene.state()
    assert ("waiting", fleet.clock.now() + timedelta(seconds=300)) == (
        state.status,
        state.waiting.deadline_at,
    )


async def by_silence(fleet):
    await fleet.until(600)
    await fleet.tick()


async def by_evidence(fleet):
    await fleet.remove("r1")


async def by_drain(fleet):
    await fleet.remove("r1", "its node was drained", graceful=True)


async def by_the_end_of_up(fleet):
    await fleet.registry.leave(fleet.clock.now())


# D22: each removal takes one path, in one append.
@pytest.mark.parametrize("remove", [by_silence, by_evidence, by_drain, by_the_end_of_up])
async def test_a_run_is_told_in_the_append_of_any_removal(remove):
    scene, fleet = await scene_of(asks_for(("pay", {})), act=Valve())
    await fleet.world(scene, "r1")
    await fleet.register("r1")
    await scene.outside.start("s", scene.agent, run=CRAWL)
    await scene.clock.settle()

    await remove(fleet)

    log = [event async for event in scene.outside.store.read_all()]
    removed = next(each for each in log if each.type == "RunnerRemoved")
    told = log[removed.position]
    assert ("RunnerGone", removed.seq + 1) == (told.type, told.seq)


async def test_a_run_begins_although_the_log_was_not_followed_when_its_runner_came():
    scene, fleet = await scene_of()
    world = await fleet.world(scene, "r1")
    await scene.outside.start("s", scene.agent, run=CRAWL)
    await scene.clock.settle()
    world._following.cancel()
    await scene.clock.settle()
    await fleet.register("r1")
    following = asyncio.create_task(world.dispatcher.follow())
    await fleet.look()
    await fleet.look()
    following.cancel()

    assert "SessionCompleted" == (await scene.types())[-1]


# C29
async def test_a_name_that_cueline_has_is_not_offered():
    _, fleet = await scene_of(name="default")

    await fleet.register("r1")

    assert {} == dict((await fleet.log.read()).blueprints)
