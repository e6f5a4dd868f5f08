"""Runners that cannot be reached, are gone, or never came (DESIGN 5 and 6)."""

import pytest

from cueline.actors.background_task import GRACE_SECONDS
from cueline.actors.host_dependencies import REACH_SECONDS
from cueline.actors.presence import REMOVAL_SECONDS
from cueline.actors.runner import CallName
from cueline.actors.tool_port import ReconcileFinding
from cueline.errors import RunnerGoneError, StaleOrderError
from cueline.events.agent_parts import Demands
from cueline.events.event_text import cause_text
from cueline.events.inbox import MessageSent, ResumeAsked, StopAsked
from cueline.events.session import (
    SessionWaiting,
    ToolFailed,
    ToolInDoubt,
    ToolReconciled,
    ToolStarted,
)
from cueline.testing.fakes import Runners, asks_for, says, tool_spec
from tests.actors.session_harness import FOLDER, SESSION, TOOLS, SessionHarness, Valve, runner_on


async def test_a_call_waits_for_a_runner_that_reaches_the_workspace():
    scene = SessionHarness([asks_for(("build", {})), says("done")], workspace=FOLDER)
    scene.outside.runners.reach = False

    world = await scene.begin()

    waiting = await scene.last(SessionWaiting)
    assert ("runner", "no_runner") == (waiting.kind, waiting.cause.code)
    assert Demands(machine="m1") == waiting.cause.demands == waiting.cause.unmet
    assert REMOVAL_SECONDS == (waiting.deadline_at - scene.clock.now()).total_seconds()
    assert [] == await world.host.active()


async def test_a_call_waits_for_a_runner_with_what_its_tool_and_agent_demand():
    # The person who waits reads what is missing, and the fleet what to start.
    needs = Demands(labels={"gpu": "a100"}, resources={"gpus": 2})
    train = tool_spec("train").model_copy(update={"demands": needs})
    scene = SessionHarness(
        [asks_for(("train", {})), says("done")],
        (train,),
        demands={"labels": {"zone": "eu", "gpu": "any"}},
    )

    await scene.begin()

    cause = (await scene.last(SessionWaiting)).cause
    assert {"gpu": "a100", "zone": "eu"} == cause.demands.labels
    assert "no runner offers the label zone=eu, the label gpu=a100, 2 gpus" == cause_text(cause)


async def test_it_goes_on_when_one_comes_and_something_wakes_it():
    scene = SessionHarness([asks_for(("build", {})), says("done")], workspace=FOLDER)
    scene.outside.runners.reach = False
    await scene.begin()

    scene.outside.runners.reach = True
    await scene.say(MessageSent(lane="note", text="Now."))

    assert "SessionCompleted" == (await scene.types())[-1]


async def waited_in_vain():
    """Return a scene whose session has waited for a runner as long as it does."""
    scene = SessionHarness([asks_for(("build", {})), says("done")], workspace=FOLDER)
    scene.outside.runners.reach = False
    world = await scene.begin()
    await scene.clock.advance(REMOVAL_SECONDS)
    await world.dispatcher.tick()
    await scene.clock.settle()
    return scene


async def test_an_operator_is_told_when_no_runner_ever_came():
    # I14
    scene = await waited_in_vain()

    waiting = await scene.last(SessionWaiting)
    assert ("operator", "no_runner") == (waiting.kind, waiting.cause.code)


async def test_other_calls_go_on_while_one_waits_for_a_runner():
    calls = asks_for(("read", {"n": 1}), ("read", {"n": 2}), ("build", {}))
    scene = SessionHarness([calls, says("done")], workspace=FOLDER)
    scene.outside.runners.reach = False

    await scene.begin()

    assert 2 == (await scene.count())["ToolReturned"]
    assert "runner" == (await scene.last(SessionWaiting)).kind


async def unreachable(scene, tool="pay"):
    """Begin a call in a runner of another machine, and lose sight of it with its host."""
    far = runner_on(scene.executor, "far")
    scene.outside.runners.ports["far"] = far
    owner = await scene.begin()
    await owner.kill()
    del scene.outside.runners.ports["far"]
    world = await scene.world()
    await scene.clock.advance(REACH_SECONDS + 0.1)
    return far, world


async def test_a_call_whose_runner_cannot_be_reached_waits():
    scene = SessionHarness([asks_for(("pay", {})), says("done")], act=Valve())

    _, world = await unreachable(scene)

    assert "runner" == (await scene.last(SessionWaiting)).kind
    assert [] == await world.host.active()


async def test_a_read_only_call_whose_runner_cannot_be_reached_runs_elsewhere():
    valve = Valve()
    scene = SessionHarness([asks_for(("read", {})), says("done")], act=valve)

    far, world = await unreachable(scene)

    assert 2 == valve.began
    assert [far.incarnation, world.name] == [
        fact.runner for fact in await scene.outside.facts(SESSION) if isinstance(fact, ToolStarted)
    ]


async def test_it_is_in_doubt_only_after_the_removal_time():
    # I5, I14
    scene = SessionHarness(
        [asks_for(("pay", {})), says("done")], act=Valve(), policy={"in_doubt": "tell"}
    )
    _, world = await unreachable(scene)

    await scene.clock.advance(REMOVAL_SECONDS)
    assert 0 == (await scene.count())["ToolInDoubt"]
    await world.dispatcher.tick()
    await scene.clock.advance(REACH_SECONDS + 0.1)

    assert 1 == (await scene.count())["ToolInDoubt"]
    assert "SessionCompleted" == (await scene.types())[-1]


async def test_a_runner_that_is_back_is_asked_what_became_of_the_call():
    valve = Valve()
    scene = SessionHarness([asks_for(("pay", {})), says("done")], act=valve)
    far, _ = await unreachable(scene)
    scene.outside.runners.ports["far"] = far
    valve.opened.set()

    await scene.say(MessageSent(lane="note", text="It is back."))

    assert (1, 0) == (valve.began, (await scene.count())["ToolInDoubt"])
    assert "SessionCompleted" == (await scene.types())[-1]


async def test_nothing_is_recorded_while_it_still_cannot_be_reached():
    # It is tried every few seconds, perhaps for ten minutes.
    scene = SessionHarness([asks_for(("pay", {})), says("done")], act=Valve())
    far, world = await unreachable(scene)
    scene.outside.runners.ports["far"] = far
    scene.outside.runners.silent.add("far")
    before = await scene.types()

    await world.dispatcher.wake("runner")
    await scene.clock.settle()

    assert before == await scene.types()
    assert [] == await world.host.active()


@pytest.mark.parametrize(("tool", "fact"), [("pay", ToolInDoubt), ("read", ToolFailed)])
async def test_the_evidence_that_a_runner_is_gone_is_recorded(tool, fact):
    scene = SessionHarness([asks_for((tool, {})), says("done")], act=Valve())
    owner = await scene.begin()
    await owner.kill()

    await scene.world()

    recorded = await scene.last(fact)
    told = recorded.cause.message if fact is ToolInDoubt else recorded.message
    assert f"process {owner.name} has ended" == told


async def test_a_connection_that_breaks_in_a_call_is_no_outcome():
    valve = Valve()
    scene = SessionHarness([asks_for(("pay", {})), says("done")], act=valve)
    far = runner_on(scene.executor, "far")

    class Broken:
        async def execute(self, order):
            valve.opened.set()
            await far.execute(order)
            raise RunnerGoneError("far", "the connection broke")

        outcome, forget = far.outcome, far.forget

    scene.outside.runners.ports["far"] = Broken()
    await scene.begin()

    assert "SessionCompleted" == (await scene.types())[-1]
    assert [f"{SESSION}/1.0"] == [start.key for start in scene.executor.starts]


# I5: a tool that says that it happened has said enough.
@pytest.mark.parametrize(
    ("finding", "told"),
    [
        (ReconcileFinding("happened"), "It took effect."),
        (ReconcileFinding("happened", "It is posted."), "It is posted."),
        (ReconcileFinding("did_not_happen", "There is nothing."), ""),
    ],
)
async def test_what_a_tool_says_of_a_lost_call_is_recorded(finding, told):
    tools = (tool_spec("post", "reconcile"),)
    scene = SessionHarness([asks_for(("post", {})), says("done")], tools, act=Valve())
    scene.executor.reconciling = {"post": lambda _: finding}
    first = await scene.begin()
    await first.kill()
    scene.outside.runners.dead[first.name] = "its process has ended"

    await scene.world()

    reconciled = await scene.last(ToolReconciled)
    assert (finding.outcome, told) == (reconciled.outcome, reconciled.output)


# I5: "never seen" promises "and never will"; who hears that is no former owner.
async def test_a_call_that_its_runner_was_asked_about_before_is_begun_as_another_attempt():
    valve = Valve(asks_for(("pay", {})))
    scene = SessionHarness({(1, 1): valve, (2, 1): says("done")})
    world = await scene.begin()
    await world.runner.outcome(CallName(SESSION, f"{SESSION}/1.0", 1, world.name, 1))

    valve.opened.set()
    await scene.clock.settle()

    assert "SessionCompleted" == (await scene.types())[-1]
    assert [2] == [start.attempt for start in scene.executor.starts]


async def test_what_is_recorded_is_forgotten_by_the_runner():
    scene = SessionHarness([asks_for(("read", {}), ("pay", {}))])
    scene.executor.tools["pay"] = Valve()

    world = await scene.begin()

    assert {f"{SESSION}/1.0": None}.items() < calls_known(world.runner).items()


class Shared(Runners):
    """Two runners, of which calls demand one by its name."""

    def choose(self, demands, *_):
        return demands.runner or [*self.ports][-1]


def calls_known(runner):
    served = runner._served[SESSION]
    return {key: call for (key, _), call in served.calls.items()}


# What a runner keeps of a session is bounded, and not by what was last asked of it.
async def test_of_a_turn_that_is_over_no_runner_knows_a_call():
    far_only = tool_spec("save", "idempotent").model_copy(update={"demands": Demands(runner="far")})
    tools = (far_only, *(each for each in TOOLS if each.name != "save"))
    calls = asks_for(("save", {}), ("read", {}), ("pay", {}))
    scene = SessionHarness([calls, Valve()], tools)
    far = runner_on(scene.executor, "far")
    scene.outside.runners = Shared({"far": far})

    world = await scene.begin()

    assert ({}, {}) == (calls_known(far), calls_known(world.runner))
    with pytest.raises(StaleOrderError):
        await far.outcome(CallName(SESSION, f"{SESSION}/1.0", 1, "far", 1))


async def test_of_a_session_that_was_stopped_in_a_call_no_runner_knows_it():
    scene = SessionHarness([asks_for(("read", {}))], act=Valve())
    world = await scene.begin()

    await scene.say(StopAsked())
    await scene.clock.advance(30)

    assert "SessionStopped" == (await scene.types())[-1]
    assert {} == calls_known(world.runner)


async def test_a_stop_reaches_a_runner_that_is_away_for_a_moment():
    valve = Valve()
    scene = SessionHarness([asks_for(("pay", {}))], act=valve)
    ports = scene.outside.runners.ports
    ports["far"] = far = runner_on(scene.executor, "far")
    await scene.begin()
    await scene.say(StopAsked())

    del ports["far"]
    await scene.clock.advance(GRACE_SECONDS)
    ports["far"] = far
    await scene.clock.advance(REACH_SECONDS)

    assert 1 == valve.cancelled
    assert "SessionStopped" == (await scene.types())[-1]


async def test_a_resume_tries_again_what_no_runner_was_found_for():
    scene = await waited_in_vain()
    scene.outside.runners.reach = True

    await scene.say(ResumeAsked())

    assert "SessionCompleted" == (await scene.types())[-1]
