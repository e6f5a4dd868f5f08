"""A tree in trouble with several hosts and runners on its log, which die, freeze and thaw."""

import asyncio
from dataclasses import dataclass, field, replace
from itertools import count

from cueline.actors.presence import presence_of
from cueline.actors.runner import Runner
from cueline.errors import RunnerGoneError
from cueline.events.store import to_us
from cueline.testing.crash import World
from cueline.testing.crash_point import CrashingExecutor, CrashingRunner, CrashPoint
from cueline.testing.fakes import Runners
from tests.crash.unsteady import Troubled, Unsteady

HOSTS = RUNNERS = 2
FREEZES = 0.02
ON_ITS_WAY = 0.2
"""How often a host freezes when it is about to send an order."""
BEAT_SECONDS = 4


class Freezing(Unsteady):
    """A process that stands still for a while, and goes on as if nothing had been."""

    def __init__(self, chance, clock):
        super().__init__(chance)
        self.clock = clock
        self.moving = asyncio.Event()
        self.moving.set()

    async def reach(self, point):
        likely = ON_ITS_WAY if point == "before an order" else FREEZES
        if self.moving.is_set() and self.chance.random() < likely:
            self.moving.clear()
            self.thawing = asyncio.create_task(self.thaw())
        await super().reach(point)

    async def thaw(self):
        await self.clock.sleep(self.chance.choice([1, 12, 30]))
        self.moving.set()

    async def go_on(self):
        await self.moving.wait()
        await super().go_on()
        await self.moving.wait()


class Line:
    """A runner as a host reaches it: who waits for an answer is told when it has ended."""

    def __init__(self, name, runner, ended):
        self.name, self.runner, self.ended = name, runner, ended

    async def execute(self, order):
        return await self.answered(self.runner.execute(order))

    async def outcome(self, name):
        return await self.answered(self.runner.outcome(name))

    async def cancel(self, name):
        await self.answered(self.runner.cancel(name))

    def forget(self, name):
        self.runner.forget(name)

    async def answered(self, asking):
        asked = asyncio.create_task(asking)
        try:
            await asyncio.wait([asked, self.ended], return_when=asyncio.FIRST_COMPLETED)
        finally:
            asked.done() or asked.cancel()
        if not asked.done():
            raise RunnerGoneError(self.name, "its process has ended")
        return asked.result()


@dataclass(slots=True)
class Reached(Runners):
    """The runners as one process reaches them, while it lives."""

    life: CrashPoint = field(default_factory=CrashPoint)
    ended: dict = field(default_factory=dict)

    def find(self, incarnation):
        if incarnation not in self.ports:
            return None
        runner = CrashingRunner(self.ports[incarnation], self.life)
        return Line(incarnation, runner, self.ended[incarnation])


class Fleet(Troubled):
    """The tree, its processes, and what happens to them."""

    def __init__(self, seed):
        self.numbers = count(1)
        self.lives, self.ended = {}, {}
        """Of the runners: how each lives, and what is done when it has ended."""
        super().__init__(seed)
        self.worlds = [self.new_world(self.new_life()) for _ in range(HOSTS)]
        for _ in range(RUNNERS):
            self.new_runner()

    def new_life(self):
        return Freezing(self.chance, self.clock)

    def new_world(self, life):
        shared = self.outside.runners
        reached = Reached(shared.ports, shared.dead, life=life, ended=self.ended)
        place = replace(self.outside, runners=reached)
        return World(place, life, runner="in another process", name=f"host {next(self.numbers)}")

    def new_runner(self):
        name, life = f"runner {next(self.numbers)}", self.new_life()
        executor = CrashingExecutor(self.outside.executor, life)
        runner = Runner(name, executor, lambda: self.clock.now().timestamp())
        self.outside.runners.ports[name], self.lives[name] = runner, life
        self.ended[name] = asyncio.get_running_loop().create_future()

    def events(self):
        return [*super().events(), self.lose_runner]

    async def lose_runner(self):
        """Have a runner end."""
        self.chance.choice(list(self.lives.values())).dead = True

    async def look(self):
        for name in [name for name, life in self.lives.items() if life.dead]:
            self.outside.runners.dead[name] = f"{name} has ended"
            del self.outside.runners.ports[name], self.lives[name]
            self.ended[name].set_result(None)
            self.new_runner()
        await super().look()

    async def end(self, *worlds):
        """Have processes end: where they are, they stay for ever."""
        for world in worlds:
            world.life.dead = True
            await self.outside.board.leave(world.name)

    async def wait(self, seconds=None):
        left = seconds or self.chance.choice([0.1, 1, 5, 30, 70])
        while left > 0:
            await self.beat()
            await self.clock.advance(min(left, BEAT_SECONDS))
            left -= BEAT_SECONDS

    async def beat(self):
        """Have every process say that it lives, but those that are frozen."""
        for world in self.worlds:
            if not isinstance(world.life, Freezing) or world.life.moving.is_set():
                beat = replace(presence_of("host"), beat_us=to_us(self.clock.now()))
                await self.outside.board.beat(replace(beat, incarnation=world.name))
