"""Many sessions of one tree, several processes that die, and a ledger that dies too."""

import asyncio
from collections import Counter
from datetime import timedelta
from decimal import Decimal
from itertools import count
from random import Random

from cueline.actors.background_task import start_loops
from cueline.actors.cost_ledger import CostLedger
from cueline.actors.dispatcher import Dispatcher, Work
from cueline.actors.model_port import ModelReply, drop_delta
from cueline.deciders.budget import BUDGET
from cueline.deciders.budget.decide import shortage
from cueline.deciders.session import Status, evolve, session_of, wake_at
from cueline.events.agent import Limits
from cueline.events.budget import Allowance, BudgetRefused
from cueline.events.inbox import ResumeAsked
from cueline.events.message import Cost, ToolCall, Usage
from cueline.events.store import from_us
from cueline.events.stream import sibling
from cueline.testing.crash import Outside, World
from cueline.testing.crash_point import CrashingRunner, CrashingStore, CrashPoint
from cueline.testing.fakes import JournalingExecutor, agent_spec, tool_spec
from tests.crash import story

CAP = Decimal("1.00")
RATE = Decimal("0.0001")
MOST = 200
"""A call answers in so many tokens at most: it costs 2 cents at most."""
TURNS = 3
SECONDS = 90
ROOT = "session-default/root"
BUDGET_STREAM = "budget-default/root"
FATES = [
    "before ModelStarted",
    "after ModelStarted",
    "before the model",
    "after the model",
    "before ModelReplied",
    "after ModelReplied",
    "before ReservationClosed",
    "after ReservationClosed",
]
"""Between reserve and start, start and reply, reply and settle, settle and end."""
LEDGERS_FATES = [
    "before CostReserved",
    "after CostReserved",
    "before CostSettled",
    "after CostSettled",
]


class Fated(CrashPoint):
    """Dies when it comes to a certain kind of point for the n-th time."""

    def __init__(self, fate, times):
        super().__init__()
        self.fate, self.times = fate, times
        self.died = asyncio.Event()

    async def reach(self, point):
        await super().reach(point)
        if point.startswith(self.fate):
            self.times -= 1
        if self.times == 0:
            self.dead = True
        await self.go_on()

    async def go_on(self):
        if self.dead:
            self.died.set()
        await super().go_on()


class JitteredModel:
    """Takes its time, and asks for a tool until its last turn; the same at each attempt's name."""

    def __init__(self, seed):
        self.seed = seed
        self.clock = None
        self.flying = self.peak = 0

    async def reply(self, request, deltas=drop_delta):
        chance = Random(f"{self.seed} {request.session} {request.turn} {request.attempt}")
        self.flying += 1
        self.peak = max(self.peak, self.flying)
        try:
            await self.clock.sleep(chance.uniform(0.2, 8.0))
        finally:
            self.flying -= 1
        used = Usage(input=chance.randint(1, 9), output=chance.randint(5, 60))
        call = ToolCall(id="c", name="read", arguments={})
        calls = (call,) if request.turn < TURNS else ()
        return ModelReply(calls=calls, stop_reason="end", usage=used, model="fake")

    async def close(self):
        pass


class LedgerElsewhere:
    """A ledger in a process of its own, which dies now and then; who asks, asks again."""

    def __init__(self, place, chance):
        self.place, self.chance = place, chance
        self.deaths = Counter()
        self.restart()

    def restart(self):
        self.life = Fated(self.chance.choice(LEDGERS_FATES), self.chance.randint(3, 12))
        journal = self.place.journal_on(CrashingStore(self.place.store, self.life))
        self.ledger = CostLedger(journal)

    def __getattr__(self, method):
        return lambda *asked: self.ask(method, *asked)

    async def ask(self, method, *asked):
        while True:
            life = self.life
            asking = asyncio.ensure_future(getattr(self.ledger, method)(*asked))
            dying = asyncio.ensure_future(life.died.wait())
            await asyncio.wait({asking, dying}, return_when=asyncio.FIRST_COMPLETED)
            dying.cancel()
            if asking.done():
                return asking.result()
            asking.cancel()
            if life is self.life:
                self.deaths[life.fate] += 1
                self.restart()


class GrowingIndex:
    """Which sessions have work, folded on from where the last look ended."""

    def __init__(self, journal):
        self.journal = journal
        self.position = 0
        self.states, self.inboxes = {}, {}

    async def look(self):
        async for recorded, fact in self.journal.read_all(self.position):
            self.position = recorded.position
            session = sibling(recorded.stream, "session")
            if recorded.stream.startswith("inbox"):
                self.inboxes[session] = recorded.version
            elif recorded.stream.startswith("session"):
                state = self.states.get(session) or session_of(session)
                self.states[session] = evolve(state, fact)

    async def overdue(self, now):
        await self.look()
        for name, state in self.states.items():
            moment = wake_at(state)
            if moment is not None and moment <= now:
                yield [Work(name, unread=False)]

    async def pending(self, after):
        await self.look()
        found = []
        for name, length in self.inboxes.items():
            state = self.states.get(name)
            unread = state is None or length > state.inbox_read
            if name > after and (unread or state.status in (Status.RUNNING, Status.STOPPING)):
                found.append(Work(name, unread))
        return sorted(found)

    async def driven(self):
        await self.look()
        driven = (Status.RUNNING, Status.STOPPING)
        return [name for name, state in self.states.items() if state.status in driven]


class Tree:
    """64 sessions below one root that has a limit of money."""

    def __init__(self, seed, sessions=64, processes=12):
        self.chance = Random(seed)
        self.model = JitteredModel(seed)
        executor = JournalingExecutor({"read": read})
        self.place = Outside.new(self.model, executor)
        self.model.clock = self.place.clock
        self.place.bound = lambda agent, sent, counted: (sent + MOST, MOST * RATE)
        self.place.price = price
        self.place.ledger = LedgerElsewhere(self.place, self.chance)
        self.runner = story.runner_of(self.place)
        self.index = GrowingIndex(self.place.journal)
        self.names = [f"s{number}" for number in range(1, sessions)]
        self.deaths = Counter()
        self.numbers = count()
        self.worlds = [self.process() for _ in range(processes)]

    @property
    def streams(self):
        return [ROOT, *(f"session-default/{name}" for name in self.names)]

    async def start(self):
        agent = agent_spec(tool_spec("read", "read_only"))
        limited = agent.model_copy(update={"limits": Limits(max_cost=CAP)})
        await self.place.start("root", limited)
        top = Allowance(session=ROOT, max_cost=CAP)
        own = Allowance(session="session-default/s1", max_cost=CAP / 8)
        for number, name in enumerate(self.names, start=1):
            below = 1 < number <= 8  # of s1, which has a limit of its own
            limits = Limits(max_cost=CAP / 8) if number == 1 else Limits()
            await self.place.start(
                name,
                agent.model_copy(update={"limits": limits}),
                parent=own.session if below else ROOT,
                root=ROOT,
                depth=2 if below else 1,
                allowances=(own, top) if below else (top,),
            )

    def process(self, *, mortal=True):
        fate = self.chance.choice(FATES) if mortal else "never"
        life = Fated(fate, self.chance.randint(3, 12))
        runner = CrashingRunner(self.runner, life)
        # A name of its own, so that a seed is the same run whatever ran before it.
        return World(self.place, life, runner=runner, scope=(), name=f"p{next(self.numbers)}")

    async def hosts(self):
        """See `HostDirectory.hosts`."""
        return {world.name: world.host for world in self.worlds}

    async def run(self):
        """Let processes come and go until nothing more can happen by itself."""
        clock = self.place.clock
        ends = clock.now() + timedelta(seconds=SECONDS)
        dispatcher = Dispatcher(
            store=self.place.store,
            index=self.index,
            fleet=self,
            board=self.place.board,
            clock=clock,
        )
        follow = {"following the log": dispatcher.follow}
        (following,) = start_loops(follow, clock=clock, on_trouble=lambda *_: None)
        while not await self.rests() or clock.now() < ends:
            assert clock.now() < ends + timedelta(seconds=600), await self.restless()
            mortal = clock.now() < ends
            self.worlds = [self.living(world, mortal=mortal) for world in self.worlds]
            await dispatcher.tick()
            await clock.advance(1.0)
            if not mortal:
                await self.resume()
        following.cancel()

    def living(self, world, *, mortal):
        """Return *world*, or the process that takes its place when it is dead."""
        if not world.life.dead:
            return world
        self.deaths[world.life.fate] += 1
        return self.process(mortal=mortal)

    async def restless(self):
        states = [self.index.states[name] for name in self.streams]
        return [(s.stream, s.status, s.waiting) for s in states if not s.finished]

    async def resume(self):
        """Have a person look after those that lost three hosts in a row."""
        for name in self.streams:
            state = self.index.states.get(name)
            if state is not None and state.waiting is not None and state.hold:
                await self.place.say(name, ResumeAsked())

    async def rests(self):
        """Whether each session has ended, or waits for a raise."""
        await self.index.look()
        states = [self.index.states.get(name) for name in self.streams]
        return all(s is not None and (s.finished or exhausted(s)) for s in states)


def exhausted(state):
    return state.waiting is not None and state.waiting.exhausted


async def read(order):
    return "read"


def price(agent, model, usage):
    return Cost(usd=(usage.input + usage.output) * RATE, prices="list")


async def longest_wait(place):
    """Return for how many seconds anybody waited at most while there was room, and the refusals."""
    state, since, longest, refusals = BUDGET.initial_state, {}, 0.0, Counter()
    now = place.clock.now()
    async for recorded, fact in place.journal.read(BUDGET_STREAM):
        now = from_us(recorded.recorded_us)
        state = BUDGET.evolve(state, fact)
        if isinstance(fact, BudgetRefused):
            refusals[fact.answer] += 1
        waiting = {n: node.wanted for n, node in state.nodes.items() if node.wanted is not None}
        fits = {n for n, w in waiting.items() if shortage(state, n, w.amount) is None}
        for name in since.keys() - fits:
            longest = max(longest, (now - since.pop(name)).total_seconds())
        for name in fits - since.keys():
            since[name] = now
    assert not since, f"{sorted(since)} wait at the end, and there is room"
    return longest, refusals
