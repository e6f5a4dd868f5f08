"""One session on fakes: what the tests of the actors share."""

import asyncio
from collections import Counter
from dataclasses import replace

from cueline.actors.presence import presence_of
from cueline.actors.runner import Runner
from cueline.errors import LogUnavailableError
from cueline.events.inbox import DecisionGiven
from cueline.testing.crash import CrashPoint, Outside, World
from cueline.testing.fakes import (
    JournalingExecutor,
    TurnModel,
    agent_spec,
    asks_for,
    says,
    tool_spec,
)

SESSION = "session-default/s"
TOOLS = (
    tool_spec("read", "read_only"),
    tool_spec("save", "idempotent"),
    tool_spec("pay"),
    tool_spec("deploy", sensitive=True),
    tool_spec("build", needs_workspace=True),
)

FOLDER = {"machine": "m1", "path": "/work"}


class Interrupted(CrashPoint):
    """A process in which something else happens at a point; `at` maps the point to it."""

    def __init__(self, at):
        super().__init__()
        self.at = at

    async def reach(self, point):
        await super().reach(point)
        if point in self.at:
            await self.at[point]()


class Cut(CrashPoint):
    """A process that cannot reach the log for a while; the model, it can."""

    away = False

    async def reach(self, point):
        if "the model" not in point:
            await super().reach(point)

    async def go_on(self):
        if self.away:
            raise LogUnavailableError("log.db", "it does not answer")


class SessionHarness:
    """An outside, one session in it, and the world that drives it."""

    def __init__(self, replies, tools=TOOLS, act=None, secrets=(), **agent):
        self.model = TurnModel(replies)
        executor = JournalingExecutor(dict.fromkeys((t.name for t in tools), act or fine))
        self.outside = Outside.new(self.model, executor, secrets)
        self.agent = agent_spec(*tools, **agent)
        self.clock = self.outside.clock
        self.executor = executor

    async def begin(self, life=None, slots=None, **asked):
        """Ask for the session, and drive it as far as it goes without time passing."""
        await self.outside.start("s", self.agent, **asked)
        return await self.world(life, slots=slots)

    async def world(self, life=None, **options):
        """Bring a new process to life, and let it look for work."""
        world = World(self.outside, life, **options)
        looking = asyncio.create_task(world.dispatcher.tick())
        await self.clock.settle()
        await looking
        return world

    async def say(self, *messages):
        await self.outside.say(SESSION, *messages)
        await self.clock.settle()

    async def types(self):
        return await self.outside.types(SESSION)

    async def count(self):
        return Counter(await self.types())

    async def last(self, kind):
        return [fact for fact in await self.outside.facts(SESSION) if isinstance(fact, kind)][-1]

    async def state(self):
        return await self.outside.state(SESSION)

    async def told(self):
        """Return what the model was told of the last call."""
        return (await self.outside.transcript(SESSION))[-2].decode()

    async def decide(self, verdict="grant", by="ann", result=""):
        """Have a person answer the open question."""
        (call,) = [call for call in (await self.state()).open_calls if call.asking]
        open_ = call.approval
        await self.say(
            DecisionGiven(
                approval=open_.id,
                digest=open_.digest,
                verdict=verdict,
                by=by,
                resolution=resolution_of(open_, verdict),
                result=result,
            )
        )


def resolution_of(asked, verdict):
    """Return what *verdict* says of a call in doubt; None of any other."""
    if asked.question != "did_it_happen":
        return None
    return "happened" if verdict == "grant" else "do_not_run"


async def fine(order):
    return f"{order.tool.name} is done"


class Valve:
    """What a tool or model waits for, until the test opens it."""

    def __init__(self, output="at last"):
        self.output = output
        self.opened = asyncio.Event()
        self.began = 0
        self.cancelled = 0

    async def __call__(self, *_):
        self.began += 1
        try:
            await self.opened.wait()
        except asyncio.CancelledError:
            self.cancelled += 1
            raise
        return self.output


def runner_on(executor, incarnation="r1", now=lambda: 0.0, **options):
    return Runner(incarnation, executor, now, **options)


async def living(scene, incarnation, **fields):
    """Have a process beat that is alive, or as its *fields* say."""
    presence = replace(presence_of("host"), incarnation=incarnation, **fields)
    await scene.outside.board.beat(replace(presence, beat_us=2**62))
    return presence


async def in_a_call():
    """Return a scene whose session waits for its tool, and the world that drives it."""
    scene = SessionHarness([asks_for(("pay", {})), says("done")], act=Valve())
    return scene, await scene.begin()
