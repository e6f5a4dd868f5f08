"""A rule that raises: what happened is recorded, the session is paused, and goes on later."""

from datetime import timedelta
from decimal import Decimal

import pytest
from msgspec.structs import replace

from cueline.client.redecide import first_difference
from cueline.deciders.session import DRIVEN, Status
from cueline.deciders.shell_command import simple_commands
from cueline.errors import ProviderUnavailableError, ToolFailedError
from cueline.events.agent import Fallback, Limits, ModelChoice, Policy, Rule
from cueline.events.agent_parts import BreakerPolicy, Plan, Step
from cueline.events.inbox import DecisionGiven, MessageSent, ModelChangeAsked, ResumeAsked
from cueline.events.message import Cost, Usage
from cueline.events.start import Schedule
from cueline.events.stream import sibling
from cueline.testing.crash import World
from cueline.testing.fakes import agent_spec, asks_for, says, tool_spec
from cueline.tools.catalogue import search_tools
from tests.actors.rule_fault import fault_in, rule_files
from tests.actors.session_harness import SESSION, SessionHarness, fine
from tests.crash.delegation import TreeModel, agent_tool, named

OUTCOME = "the outcome of what cannot be done twice"
PAUSES = ("rule_failed", "unexpected_error")
PAYS = asks_for(("pay", {}))


class Scene(SessionHarness):
    """A session in which a file of rules breaks just before something is recorded."""

    streams = (SESSION,)
    most_starts = 1

    async def play(self, fault):
        self.fault = fault
        return await self.begin()

    async def act(self, order):
        self.fault.begin()
        return OUTCOME


class OfATool(Scene):
    """A call returns, in a session that pays for its model and has a policy."""

    def __init__(self):
        rule = Rule(name="pay", tools=("pay",), answer="allow")
        limits = Limits(max_cost=Decimal(1), max_wall_seconds=3600)
        replies = [PAYS, says("Done.")]
        policy = Policy(rules=(rule,))
        super().__init__(replies, act=self.act, limits=limits, policy=policy)
        self.outside.bound = lambda agent, sent, counted: (sent, Decimal("0.1"))
        self.outside.price = lambda agent, model, usage: Cost(usd=Decimal("0.04"), prices="list")


class OfAModel(Scene):
    """A model replies, and asks for a call."""

    def __init__(self):
        policy = Policy(rules=(Rule(name="any", commands=("git*",), answer="deny"),))
        super().__init__([self.reply, says("Done."), says("Done.")], policy=policy)

    async def reply(self):
        simple_commands.cache_clear()
        self.fault.begin()
        return asks_for(("read", {"about": OUTCOME}))


class OfAFailure(Scene):
    """A model fails, and another one would be asked."""

    def __init__(self):
        other = Fallback(provider="fake", model="other")
        super().__init__({(1, 1): self.fail, (1, 2): says("Done.")}, fallback=(other,))

    async def fail(self):
        self.fault.begin()
        raise ProviderUnavailableError("overloaded", OUTCOME)


class OfAFailedTool(Scene):
    """A call fails, and would be tried again."""

    most_starts = 2

    def __init__(self):
        asks = asks_for(("read", {}))
        super().__init__([asks, says("Done.")], act=self.fail)
        self.times = 0

    async def fail(self, order):
        self.times += 1
        if self.times > 1:
            return "at last"
        self.fault.begin()
        raise ToolFailedError("timeout", OUTCOME)


class OfAPlan(Scene):
    """A step returns, and the next one takes its value."""

    most_starts = 2

    def __init__(self):
        steps = (
            Step(name="pay"),
            Step(
                name="read", when="steps.pay.text != 'no'", arguments={"n": "{{ steps.pay.text }}"}
            ),
        )
        super().__init__((), act=self.one_by_one, provider="workflow", plan=Plan(steps=steps))

    async def one_by_one(self, order):
        return await (self.act(order) if order.tool.name == "pay" else fine(order))


class OfAChild(Scene):
    """A call of a child returns, while its parent waits for it."""

    streams = (f"{SESSION}.1.0",)

    def __init__(self):
        super().__init__((), act=self.act)
        child = named("look", tool_spec("pay"))
        self.model = self.outside.model = TreeModel(
            {
                SESSION: [asks_for(("look", {"goal": "see"})), says("Done.")],
                self.streams[0]: [PAYS, says("I saw it.")],
            }
        )
        self.agent = agent_spec(agent_tool("look"), agents={"look": child})


class OfADecision(Scene):
    """A person allows a call."""

    def __init__(self):
        super().__init__([asks_for(("deploy", {})), says("Done.")])

    async def play(self, fault):
        world = await self.begin()
        (call,) = (await self.state()).open_calls
        asked = call.approval
        fault.begin()
        said = DecisionGiven(approval=asked.id, digest=asked.digest, verdict="grant", by=OUTCOME)
        await self.say(said)
        return world


class OfAMessage(Scene):
    """A person says something to a session that waits."""

    message = MessageSent(lane="followup", text=OUTCOME)

    def __init__(self):
        super().__init__([says("Well?"), says("Done.")])

    async def play(self, fault):
        world = await self.begin(open=True)
        fault.begin()
        await self.say(self.message)
        return world


class OfAStart(Scene):
    """A session starts, at a time of its own."""

    def __init__(self):
        super().__init__([says("Done.")])

    async def play(self, fault):
        world = await self.world()
        fault.begin()
        await self.outside.start(
            "s",
            self.agent,
            goal=OUTCOME,
            schedule=Schedule(at=self.clock.now() + timedelta(seconds=3)),
        )
        await self.clock.settle()
        return world


class OfACompaction(Scene):
    """A model's reply uses up its context window; what was said is summarised next."""

    def __init__(self):
        super().__init__(
            [self.reply, says("Done."), says("Done.")], context_window=1000, compact_at=0.5
        )

    async def reply(self):
        self.fault.begin()
        return replace(says(OUTCOME), usage=Usage(input=900, output=50))

    async def play(self, fault):
        self.fault = fault
        world = await self.begin(open=True)
        await self.say(MessageSent(lane="followup", text="more"))
        return world


class OfABreaker(Scene):
    """A call fails, and the next one of its tool is left out for that."""

    most_starts = 2

    def __init__(self):
        policy = BreakerPolicy(threshold=1, on_open="fallback")
        search = tool_spec("search", "read_only").model_copy(update={"breaker": policy})
        asks = asks_for(("search", {}))
        super().__init__(
            [asks, asks, says("Done.")], (search,), act=self.fail, retry={"max_retries": 0}
        )

    async def fail(self, order):
        self.fault.begin()
        raise ToolFailedError("timeout", OUTCOME)


class OfASearch(Scene):
    """A model searches for a tool."""

    def __init__(self):
        hidden = tool_spec("mail").model_copy(update={"searched": True})
        replies = [self.reply, says("Done."), says("Done.")]
        super().__init__(replies, (hidden, *search_tools()))

    async def reply(self):
        self.fault.begin()
        return asks_for(("find_tools", {"query": OUTCOME}))


class OfASwitch(OfAMessage):
    """A person chooses another model."""

    message = ModelChangeAsked(model=ModelChoice(provider="fake", model=OUTCOME))


SCENES = (
    OfATool,
    OfAModel,
    OfAFailure,
    OfAFailedTool,
    OfAPlan,
    OfAChild,
    OfADecision,
    OfAMessage,
    OfASwitch,
    OfAStart,
    OfACompaction,
    OfABreaker,
    OfASearch,
)
NOT_OF_A_SESSION = {
    "backtest.py",
    "fleet.py",
    "fleet_worker.py",
    "person.py",
    "plan_fault.py",
    "policy_fault.py",
    "reconcile.py",
    "sandbox.py",
    "token.py",
}
"""The rules of what no outcome of a session passes through."""


async def recorded(scene):
    """Return what the log has of the session, and what it was sent."""
    streams = [each for s in scene.streams for each in (s, sibling(s, "inbox"))]
    facts = [fact for stream in streams for fact in await scene.outside.facts(stream)]
    return "\n".join(fact.model_dump_json() for fact in facts)


async def breaks(kind, fault):
    """Have a file of rules break in a scene; return the scene, and the world of its session."""
    scene = kind()
    world = await scene.play(fault)
    await scene.clock.advance(5)
    return scene, world


@pytest.mark.parametrize("name", rule_files())
async def test_whichever_rule_raises_the_outcome_is_recorded_and_the_session_goes_on_later(name):
    met, pauses = 0, []
    for kind in SCENES:
        with fault_in(name) as fault:
            scene, world = await breaks(kind, fault)
            assert OUTCOME in await recorded(scene)
            fault.end()
            if fault.was_met:
                met += 1
                state = await scene.outside.state(scene.streams[0])
                pauses += [state.hold.cause.code] if state.hold is not None else []
                assert [] == await world.host.active()
                assert state.status not in DRIVEN or world.troubles
                await resume(scene, world)
                assert len(scene.executor.starts) <= scene.most_starts

    assert bool(met) != (name in NOT_OF_A_SESSION)
    assert {"rule_failed"} >= set(pauses)


async def test_a_rule_that_cannot_balance_hosts_keeps_no_session_from_one():
    scene = SessionHarness([says("Done.")])
    await scene.outside.start("s", scene.agent)
    world = World(scene.outside)
    with fault_in("matching.py", "surplus") as fault:
        fault.begin()
        with pytest.raises(TypeError, match="a rule is broken"):
            await world.dispatcher.tick()
        await scene.clock.settle()

    assert Status.COMPLETED == (await scene.state()).status


async def resume(scene, world):
    """Have a person resume what is paused, and see it through to its end."""
    for stream in {SESSION, *scene.streams}:
        if (state := await scene.outside.state(stream)).hold or state.status == Status.CREATED:
            await scene.outside.say(stream, ResumeAsked())
    for _ in range(2):  # to the time at which it starts, and on
        await world.rest(within=3600)
    for stream in {SESSION, *scene.streams}:
        status = (await scene.outside.state(stream)).status
        assert status in (Status.COMPLETED, Status.IDLE), (scene, stream)
        past = [each async for each in scene.outside.journal.read(stream)]
        assert first_difference(stream, past, whole=True)[1] is None
