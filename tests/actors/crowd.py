"""Sessions that share a breaker: one agent, one log, any number of processes."""

import asyncio

from cueline.actors.model_port import drop_delta
from cueline.deciders.breaker import BREAKER
from cueline.errors import ProviderUnavailableError
from cueline.events.session import SessionWaiting
from cueline.testing.crash import Outside, World
from cueline.testing.fakes import JournalingExecutor, agent_spec, says

MODEL = "breaker-default/fake.fake"
ACCOUNT = "breaker-default/fake"
AGENT = {"retry": {"max_retries": 0}, "breaker": {"threshold": 3}}


class Provider:
    """A model that is ill until it is told to be well."""

    def __init__(self, fault=None):
        self.fault = fault or ProviderUnavailableError("overloaded", "too much")
        self.only = ""
        """The one model that is ill, if not all."""
        self.asked = []

    async def reply(self, request, deltas=drop_delta):
        self.asked.append(request.session)
        if self.fault is not None and self.only in {"", request.agent.model}:
            raise self.fault
        return says("Well.")

    async def close(self):
        """Nothing to let go of."""


class Crowd:
    """Sessions of one agent on one log, and whatever processes drive them."""

    def __init__(self, fault=None, **agent):
        self.provider = Provider(fault)
        self.outside = Outside.new(self.provider, JournalingExecutor({}))
        self.clock = self.outside.clock
        self.agent = agent_spec(**{**AGENT, **agent})
        self.count = 0

    async def start(self, how_many=1):
        names = [f"s{self.count + n}" for n in range(1, how_many + 1)]
        self.count += how_many
        return [await self.outside.start(name, self.agent) for name in names]

    async def world(self, life=None):
        world = World(self.outside, life)
        await self.tick(world)
        return world

    async def tick(self, *worlds):
        for world in worlds:
            looking = asyncio.create_task(world.dispatcher.tick())
            await self.clock.settle()
            await looking

    async def breaker(self, stream=MODEL):
        facts = [fact async for _, fact in self.outside.journal.read(stream)]
        return BREAKER.replay(facts), facts

    async def types(self, stream=MODEL):
        return await self.outside.types(stream)

    async def waits(self, stream):
        facts = await self.outside.facts(stream)
        return [f for f in facts if isinstance(f, SessionWaiting) and f.kind == "breaker"]

    async def status(self, stream):
        return str((await self.outside.state(stream)).status)


async def opened(**agent):
    """Return a crowd with an open breaker, and the process that opened it."""
    crowd = Crowd(**agent)
    await crowd.start(3)
    return crowd, await crowd.world()


class Tapped:
    """A log of which a test sees what is read and appended, and may make it fail."""

    def __init__(self, store, tap):
        self._store = store
        self._tap = tap

    def __getattr__(self, name):
        return getattr(self._store, name)

    def read(self, stream, *rest):
        self._tap("read", stream)
        return self._store.read(stream, *rest)

    async def append(self, writes, key):
        for write in writes:
            self._tap("append", write.stream)
        return await self._store.append(writes, key)
