"""A tree of sessions in trouble: people interfere, and nothing they work with is steady."""

import asyncio
from decimal import Decimal
from random import Random

from cueline.actors.fold import SessionCache
from cueline.actors.model_port import drop_delta
from cueline.actors.session_tree import child_of
from cueline.deciders.session import Status
from cueline.errors import (
    LogUnavailableError,
    ProviderUnavailableError,
    RejectedError,
    ToolFailedError,
    UnknownOutcomeError,
)
from cueline.events.agent import Limits
from cueline.events.agent_parts import BreakerPolicy, RetryPolicy
from cueline.events.inbox import (
    DecisionGiven,
    MessageSent,
    PauseAsked,
    RaiseAsked,
    ResumeAsked,
    StartAsked,
    StopAsked,
)
from cueline.events.message import Cost
from cueline.events.stream import sibling
from cueline.testing.clock import take_turns
from cueline.testing.crash import Outside, World
from cueline.testing.crash_point import CrashPoint
from cueline.testing.fakes import JournalingExecutor, agent_spec, asks_for, says, tool_spec

TOOLS = (tool_spec("read", "read_only"), tool_spec("pay"), tool_spec("deploy", sensitive=True))
PLAIN = [("grant", None), ("deny", None)]
OF_A_DOUBT = [("grant", "happened"), ("grant", "run_again"), ("deny", "do_not_run")]
CENT = Decimal("0.01")
TURNS = 3
SESSIONS = 4
STEPS = 25


class Unsteady(CrashPoint):
    """A process to which the log is slow, and does not always answer; it may die."""

    def __init__(self, chance):
        super().__init__(chance.choice([None, None, chance.randrange(20, 400)]))
        self.chance = chance

    async def reach(self, point):
        await super().reach(point)
        when, what, *_ = point.split()
        if what[0].isupper() and self.chance.random() < 0.05:  # an append, by its events
            lost = UnknownOutcomeError("log", "the connection broke")
            full = LogUnavailableError("log", "the disk is full")
            raise lost if when == "after" else self.chance.choice([lost, full])

    async def go_on(self):
        await super().go_on()
        for _ in range(self.chance.choice([0, 0, 1, 2, 5])):
            await take_turns()
        await super().go_on()


class Moody:
    """A provider that takes its time, counts prompts, and is ill now and then."""

    def __init__(self, chance, clock):
        self.chance, self.clock = chance, clock
        self.record_failure = 0.3

    async def reply(self, request, deltas=drop_delta):
        await self.clock.sleep(self.chance.uniform(0, 10))
        if self.chance.random() < self.record_failure:
            kind = self.chance.choice(["overloaded", "rate_limited", "network"])
            raise ProviderUnavailableError(kind, "", self.chance.choice([None, 3.0, 40.0]))
        if request.turn >= TURNS:
            return says("Done.")
        return asks_for(*[(self.chance.choice(TOOLS).name, {}) for _ in range(2)])

    async def count(self, _):
        await self.clock.sleep(self.chance.uniform(0, 2))
        return 10

    async def close(self):
        """Nothing to let go of."""


class Troubled:
    """The tree, and what happens to it."""

    def __init__(self, seed):
        self.chance = Random(seed)
        self.outside = Outside.new(None, JournalingExecutor(dict.fromkeys(_names(), self._act)))
        self.clock = self.outside.clock
        self.outside.model = Moody(self.chance, self.clock)
        self.outside.bound = lambda *_: (10, 10 * CENT)
        self.outside.price = lambda *_: Cost(usd=4 * CENT, prices="list")
        self.streams = []
        self.worlds = [self.new_world(self.new_life())]

    async def __aenter__(self):
        return self

    async def __aexit__(self, *_):
        # Who is dead waits at its ports, and again when it is cancelled there.
        while running := asyncio.all_tasks() - {asyncio.current_task()}:
            for task in running:
                task.cancel()
            await self.clock.settle()

    async def start(self):
        root = self._agent(limits=Limits(max_cost=Decimal("0.30")))
        self.streams.append(await self.outside.start("root", root, open=True))
        await self.look()
        for number in range(1, SESSIONS):
            agent, parent = self._agent(), self.chance.choice(self.streams)
            options = StartAsked(agent=agent, goal="help", asked_at=self.clock.now())
            try:
                options = await child_of(SessionCache(self.outside.journal), parent, options)
            except RejectedError:
                continue  # its parent has not begun, or has ended
            place = {n: getattr(options, n) for n in ("parent", "root", "depth", "allowances")}
            self.streams.append(await self.outside.start(f"c{number}", agent, "help", **place))
            await self.look()

    async def suffer(self):
        """Have things happen, and a process come after each that died."""
        events = self.events()
        for _ in range(STEPS):
            await self.chance.choice(events)()
            await self.look()
            await self._replace([world for world in self.worlds if world.life.dead])

    def events(self):
        """Return what may happen."""
        events = [self.wait, self.wait, self._answer, self._say, self._say, self._die]
        return [*events, self._drain, self._turn]

    async def calm_down(self):
        """Have everybody come to rest: all is well now, and people allow what is asked."""
        self.outside.model.record_failure = 0.0
        await self.end(*self.worlds)
        self.worlds = [self.new_world(CrashPoint())]
        await self.outside.say(self.streams[0], RaiseAsked(max_cost=Decimal(9)))
        for _ in range(60):
            await self.look()
            await self._answer("grant")
            held = [s for s in self.streams if (await self.outside.state(s)).hold]
            for stream in held:
                await self.outside.say(stream, ResumeAsked())
            if not held and not await self.unrested():
                return
            await self.wait(61)

    async def unrested(self):
        left = []
        for stream in self.streams:
            state = await self.outside.state(stream)
            inbox = await self.outside.store.head(sibling(stream, "inbox"))
            unread = inbox.version > max(state.inbox_read, 1)
            if unread or not (state.finished or state.status is Status.IDLE):
                left.append((stream, state.status, state.waiting, unread))
        return left

    def _agent(self, **fields):
        return agent_spec(
            *TOOLS,
            retry=RetryPolicy(max_retries=2),
            breaker=BreakerPolicy(threshold=3, on_open=self.chance.choice(["wait", "pause"])),
            **fields,
        )

    def new_life(self):
        """Return how a process lives."""
        return Unsteady(self.chance)

    def new_world(self, life):
        """Return a process that lives so."""
        return World(self.outside, life)

    async def end(self, *worlds):
        """Have processes end."""
        for world in worlds:
            await world.kill()

    async def wait(self, seconds=None):
        """Let time pass."""
        await self.clock.advance(seconds or self.chance.choice([0.1, 1, 5, 30, 70]))

    async def _act(self, order):
        await self.clock.sleep(self.chance.uniform(0, 5))
        if self.chance.random() < 0.1:
            raise ToolFailedError("network", "it broke")
        return f"{order.tool.name} is done"

    async def look(self):
        """Have every process look for work once."""
        for world in self.worlds:
            looking = asyncio.create_task(world.dispatcher.tick())
            await self.clock.settle()
            looking.cancel()  # a dead process never ends it
            await asyncio.gather(looking, return_exceptions=True)

    async def _answer(self, verdict=None):
        for stream in self.streams:
            for call in (await self.outside.state(stream)).open_calls:
                if call.asking:
                    asked = call.approval
                    words = PLAIN if asked.question == "may_it_run" else OF_A_DOUBT
                    said, resolution = self.chance.choice(
                        [word for word in words if verdict in (None, word[0])]
                    )
                    given = {"approval": asked.id, "digest": asked.digest, "verdict": said}
                    given["resolution"] = resolution
                    await self.outside.say(stream, DecisionGiven(**given, by="ann"))

    async def _say(self):
        lane = self.chance.choice(["note", "steer", "followup"])
        said = [PauseAsked(), ResumeAsked(), ResumeAsked(), RaiseAsked(max_cost=Decimal(2))]
        said += [MessageSent(lane=lane, text="Well?"), StopAsked(reason="enough")]
        await self.outside.say(self.chance.choice(self.streams), self.chance.choice(said))

    async def _die(self):
        await self._replace([self.chance.choice(self.worlds)])

    async def _drain(self):
        world = self.chance.choice(self.worlds)
        draining = asyncio.create_task(world.host.drain(5))
        await self.clock.advance(1)
        draining.cancel()
        await asyncio.gather(draining, return_exceptions=True)
        await self._replace([world])

    async def _replace(self, worlds):
        await self.end(*worlds)
        for world in worlds:
            self.worlds[self.worlds.index(world)] = self.new_world(self.new_life())

    async def _turn(self):
        self.outside.model.record_failure = self.chance.choice([0.0, 0.3, 0.9])


def _names():
    return [tool.name for tool in TOOLS]
