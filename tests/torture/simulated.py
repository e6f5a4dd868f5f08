"""Simulated schedules of sessions, budgets, breakers, trees, fleets and sandboxes.

Each schedule is drawn by its seed alone. The clock is a fake, the log is in memory, and the rules
are the real ones; the trees, the fleets and the sandboxes also have the real actors. The promises
are checked after each step, and at the end.
"""

import asyncio
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from random import Random

from hypothesis import HealthCheck, Phase, given, seed, settings

from cueline.actors.sandbox_pool import SWEEP_SECONDS, WAKE_SECONDS, SandboxReady
from cueline.deciders.budget import BUDGET
from cueline.errors import SandboxError, SandboxGoneError
from cueline.events.inbox import ChildEnded
from cueline.events.stream import sibling
from tests.actors.test_sandbox_pool import ASKS, GOES_ON, QUEUES, STOPPED, Bench, Dies
from tests.crash.fleet import Fleet
from tests.crash.test_unsteady import check_course
from tests.crash.unsteady import Troubled
from tests.deciders.session_story import PLANNED, STARTS, simulate
from tests.deciders.simulation import check_end, finish
from tests.deciders.test_breaker import COMMANDS, check_breaker
from tests.deciders.test_budget_machine import Budget

POOL = 50
"""The sessions that schedules begin with; hypothesis draws them once."""


@cache
def drawn(strategy, number):
    """Return values of a strategy, drawn by a seed."""
    found = []

    @seed(number)
    @settings(
        max_examples=POOL,
        database=None,
        phases=[Phase.generate],
        deadline=None,
        suppress_health_check=list(HealthCheck),
    )
    @given(strategy)
    def draw(value):
        found.append(value)

    draw()
    return found


def story(chance, starts):
    """Let anything happen to a session: late, early, twice, never; then let it go on to its end."""
    start = chance.choice(drawn(starts, 1))
    shell = simulate(start, [chance.randrange(2**14) for _ in range(chance.randint(10, 60))])
    shell.crash()
    finish(shell)
    check_end(shell)


def budget(chance):
    """Have five sessions reserve, settle, release, die and raise, in any order."""
    machine = Budget()
    machine.begin(root=chance.randint(50, 200), a=chance.choice([None, chance.randint(20, 80)]))
    names = sorted(machine.epochs)
    acts = [
        lambda: machine.reserve(chance.choice(names), chance.randint(0, 60)),
        lambda: machine.reserve(chance.choice(names), chance.randint(0, 60)),
        lambda: machine.held and machine.settle(chance.randint(0, 9), chance.randint(0, 4)),
        lambda: machine.release(chance.choice(names)),
        lambda: machine.take_over(chance.choice(names)),
        lambda: (
            machine.limits["a"]
            and machine.raise_limit(chance.choice(["root", "a"]), chance.randint(-10, 50))
        ),
    ]
    for _ in range(chance.randint(10, 40)):
        chance.choice(acts)()
        machine.no_limit_is_passed()
        machine.the_sums_are_those_of_the_calls()
        machine.whoever_is_in_line_and_was_not_told_does_not_fit_beside_those_who_were()
        machine.a_former_owner_is_fenced()
    machine.the_fold_of_the_log_is_the_state()


def breaker(chance):
    """Have calls fail, succeed and probe, while the clock jumps."""
    commands = drawn(COMMANDS, 1)
    check_breaker(
        [
            (chance.choice(commands), chance.choice([0, 1, 30, 60, 130]))
            for _ in range(chance.randint(10, 60))
        ]
    )


def course(kind, chance):
    """Have a tree of sessions in trouble come to rest, and be right."""
    asyncio.run(_course(kind, chance))


async def _course(kind, chance):
    tree = kind(chance.randrange(2**32))
    await check_course(tree)
    for stream in tree.streams:
        ends = Counter()
        async for _, fact in tree.outside.journal.read(sibling(stream, "inbox")):
            if isinstance(fact, ChildEnded):
                ends[fact.child] += 1
        assert all(times == 1 for times in ends.values()), f"untold: {stream} {ends}"
    state = BUDGET.initial_state
    for fact in await tree.outside.facts("budget-default/root"):
        state = BUDGET.evolve(state, fact)
        for node in state.nodes.values():
            for limit, most in node.limits.items():
                assert (node.settled + node.reserved).of(limit) <= most, "the budget was passed"


def sandboxes(chance):
    """Have sessions ask for sandboxes and rest, while the vendor fails and pools die."""
    with tempfile.TemporaryDirectory(dir="/dev/shm") as folder:
        asyncio.run(_sandboxes(chance, Path(folder)))


async def _sandboxes(chance, folder):
    users = Users(chance, folder)
    for name in users.names:
        await users.bench.say(name)
    for _ in range(chance.randint(10, 25)):
        users.draw_fault()
        place = chance.randrange(len(users.pools))
        try:
            await chance.choice(users.acts)(users.pools[place], chance.choice(users.names))
        except (Dies, SandboxError):
            users.pools[place] = users.bench.pool(users.slots)
    await users.leave()


class Users:
    """Four sessions that share two slots, and two pools on their log."""

    slots = 2
    names = ("s0", "s1", "s2", "s3")

    def __init__(self, chance, folder):
        self.chance, self.bench = chance, Bench(folder)
        self.rests, self.numbers = set(self.names), dict.fromkeys(self.names, 0)
        self.pools = [self.bench.pool(self.slots) for _ in range(2)]
        self.acts = [self.ask, self.ask, self.rest, self.look, self.look, self.wait]

    def draw_fault(self):
        """Have the next act of the vendor fail, or the pool die in it, sometimes."""
        faults, chance = self.bench.vendor.faults, self.chance
        faults.clear()
        if chance.random() < 0.4:
            point = chance.choice(["before", "after"]), chance.choice(["create", "start", "stop"])
            failed, gone = SandboxError("v", "it failed"), SandboxGoneError("v", "it is gone")
            faults[point] = chance.choice([Dies(), failed, gone])

    async def ask(self, pool, name):
        self.rests.discard(name)
        await self.bench.say(name, GOES_ON)
        found = await self.bench.attach(pool, name, self.numbers[name])
        if isinstance(found, SandboxReady):
            self.numbers[name] = found.number
        else:
            await self.bench.say(name, QUEUES)
            self.rests.add(name)

    async def rest(self, _, name):
        if name not in self.rests:
            await self.bench.say(name, ASKS)
            self.rests.add(name)

    async def look(self, pool, _):
        await pool.tick()

    async def wait(self, *_):
        await self.bench.clock.advance(self.chance.choice([1, WAKE_SECONDS, SWEEP_SECONDS]))

    async def leave(self):
        """End all sessions: nothing may be left of them."""
        self.bench.vendor.faults.clear()
        for name in self.names:
            await self.bench.say(name, STOPPED)
        pool = self.bench.pool(self.slots)
        for _ in range(3):
            await self.bench.clock.advance(SWEEP_SECONDS)
            await pool.tick()
        assert Counter() == self.bench.left(), f"left at the vendor: {self.bench.left()}"
        assert () == tuple((await pool._slot_log.read()).held), "a slot is held by nobody"


SCHEDULES: dict[str, Callable[[Random], None]] = {
    "session": lambda chance: story(chance, STARTS),
    "plan": lambda chance: story(chance, PLANNED),
    "budget": budget,
    "breaker": breaker,
    "tree": lambda chance: course(Troubled, chance),
    "fleet": lambda chance: course(Fleet, chance),
    "sandboxes": sandboxes,
}
SHARES = {"session": 8, "plan": 3, "budget": 2, "breaker": 1, "tree": 2, "fleet": 2, "sandboxes": 2}
"""The parts of the time."""


@dataclass
class Simulated:
    """The schedules of one kind that have run."""

    count: int = 0
    seconds: float = 0.0
    """The time of the processor."""
    found: list[str] = field(default_factory=list)
    """The seed and the message of each promise that was broken."""


def run_schedules(kind, number, seconds, least=1):
    """Run schedules of a kind for so many *seconds*, and at least so many."""
    done, schedule = Simulated(), SCHEDULES[kind]
    for strategy in (STARTS, PLANNED, COMMANDS):
        drawn(strategy, 1)
    began = time.process_time()
    while done.count < least or done.seconds < seconds:
        name = f"{kind} {number} {done.count}"
        try:
            schedule(Random(name))
        except Exception as error:  # noqa: BLE001 - whatever breaks, its seed is told
            at = traceback.extract_tb(error.__traceback__)[-1]
            done.found.append(f"{name}: {type(error).__name__}: {error} ({at.name}: {at.line})")
        done.count += 1
        done.seconds = time.process_time() - began
    return done
