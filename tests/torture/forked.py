"""The sessions of a log in processes that are forked, and killed within half a second.

A fork needs no second for its imports, so thousands of kills fit in an hour. The tools run in
the event loop of the killed process, and write down what they do beside the log.
"""

import asyncio
import json
import os
import signal
from collections import Counter, defaultdict
from contextlib import closing, suppress
from decimal import Decimal

from pydantic_core import to_json

from cueline import Agent, Limits, Policy, open_runtime
from cueline.client.document import document
from cueline.client.open_reader import open_reader
from cueline.client.redecide import check_of
from cueline.client.verify import verify_log
from cueline.clock import SystemClock
from cueline.deciders.budget import BUDGET
from cueline.errors import SessionFinishedError, UnknownSessionError
from cueline.events.agent import Price
from cueline.events.agent_parts import BreakerPolicy, RetryPolicy
from cueline.events.inbox import ChildEnded
from cueline.events.session import CallDelegated, ToolStarted
from cueline.events.stream import sibling
from cueline.runtime.loop import run
from cueline.runtime.open_log import open_log
from cueline.sqlite_library import sqlite_library
from cueline.testing.wait import PATIENCE_SECONDS
from cueline.tools.tool import ToolContext, tool
from tests.torture.acts import write_down
from tests.torture.ground import Ground
from tests.torture.judge import judge
from tests.torture.lanes import UNDISTURBED

SECRET = "TORTURE_TOKEN"
PLANTED = "sk-planted-0123456789abcdef"
LIVES = 80
"""After so many a log is left alone, so that its sessions end."""
AT_ONCE = 3
"""So many processes share the sessions of a log."""
LONGEST_PAUSE_SECONDS = 0.4
_clock = SystemClock()


async def act(context: ToolContext, item: str, seconds: float) -> str:
    write_down(context, "start")
    await _clock.sleep(seconds)
    write_down(context, "end")
    return f"done {item} with {PLANTED}"


@tool(read_only=True, needs_workspace=True)
async def look(item: str, seconds: float, context: ToolContext) -> str:
    """Change nothing."""
    return await act(context, item, seconds)


@tool(idempotent=True, needs_workspace=True)
async def put(item: str, seconds: float, context: ToolContext) -> str:
    """Do something that may be done twice."""
    return await act(context, item, seconds)


@tool(needs_workspace=True)
async def pay(item: str, seconds: float, context: ToolContext) -> str:
    """Do something that may not."""
    return await act(context, item, seconds)


def agent_of(script, name, folder, *more, **fields):
    """Return an agent that works in *folder*."""
    return Agent(
        name=name,
        provider="scripted",
        model=name,
        parameters={"script": script},
        tools=[look, put, pay, *more],
        retry=RetryPolicy(max_retries=20, base_seconds=0.01, factor=1.0),
        breaker=BreakerPolicy(threshold=0),
        policy=Policy(in_doubt="tell"),
        prices={"scripted/*": Price(input=Decimal(1), output=Decimal(1))},
        secrets=(SECRET,),
        workspace=folder,
        **fields,
    )


class ForkedGround(Ground):
    """A log whose sessions have children, a budget, and a secret in each result."""

    longest_seconds = 0.06
    longest_delay = 0.01

    def __init__(self, folder, chance, tally, turns):
        super().__init__(folder, chance, tally, turns)
        os.environ[SECRET] = PLANTED
        self.script = (folder / "script.toml").read_text()
        turns = [super(ForkedGround, self)._call(f"h.{number}") for number in range(3)]
        replies = [f"[[reply]]\ncalls = [{call}]\n" for call in turns]
        self.help = "".join([*replies, '[[reply]]\ntext = "Helped."\n'])
        self.seen = defaultdict(list)
        self.position = 0
        """The last position in `seen`."""

    def _call(self, item):
        if self.chance.random() < 0.05:
            return '{ name = "helper", arguments = { goal = "Help." } }'
        return super()._call(item)

    def agent(self, session):
        folder = self.folder / session
        folder.mkdir(exist_ok=True)
        helper = agent_of(self.help, "helper", folder)
        limits = Limits(max_turns=1000, max_cost=Decimal(5))
        return agent_of(self.script, "victim", folder, helper, limits=limits)

    def live(self, sessions):
        """Drive *sessions* in a process of its own; return its id."""
        pid = os.fork()
        if pid:
            return pid
        code = 1
        signal.alarm(int(PATIENCE_SECONDS))  # who is stuck dies, and is noticed at the end
        try:
            run(self._drive(sessions))
            code = 0
        finally:
            os._exit(code)

    async def _drive(self, sessions):
        async with open_runtime(self.log, on="inline", on_trouble=lambda *_: None) as runtime:

            async def drive(name):
                try:
                    session = await runtime.resume(name)
                except UnknownSessionError:
                    session = await runtime.start(self.agent(name), "Go", id=name)
                except SessionFinishedError:
                    return
                await session.result()

            await asyncio.gather(*map(drive, sessions))

    def children(self):
        """Return the names of the sessions that calls have started."""
        names = [name.removeprefix("session-default/") for name in self.streams()]
        return [name for name in names if "/" not in name and "." in name]

    def streams(self):
        """Return the types and hashes of the events of each stream; read only what is new."""
        uri = f"file:{self.log}?mode=ro"
        with (
            suppress(sqlite_library().Error),  # it is being made
            closing(sqlite_library().connect(uri, uri=True)) as log,
        ):
            rows = log.execute(
                "SELECT position, name, type, hash FROM events JOIN streams ON streams.id = stream "
                "WHERE position > ? ORDER BY position",
                [self.position],
            )
            for self.position, name, type_, hash_ in rows:
                self.seen[name].append((type_, hash_))
        return self.seen

    def kill(self, kind, *pids):
        """SIGKILL, after a note of what the log says until then."""
        self.streams()
        for pid in pids:
            os.kill(pid, signal.SIGKILL)
        self.tally.kills[kind] += 1

    def exported(self, session):
        return run(self._exported(session))

    async def _exported(self, session):
        async with open_reader(self.log) as reader:
            return json.loads(to_json(document(await reader.export(session))))

    def agrees(self, session):
        return run(self._agrees(session))

    async def _agrees(self, session):
        async with open_reader(self.log) as reader:
            history = await reader.history(session)
        return history.damage is None and check_of(history).difference is None

    def verified(self):
        return run(self._verified())

    async def _verified(self):
        async with open_log(self.log, read_only=True) as log:
            return not (await verify_log(log)).bad


def drive(ground, sessions, lives=LIVES):
    """Kill one of the processes that drive the sessions again and again; then let them end."""
    run(ground._drive([UNDISTURBED]))
    parts = [sessions[place::AT_ONCE] for place in range(AT_ONCE)]
    living = dict.fromkeys(range(AT_ONCE), 0)
    for _ in range(lives):
        for place, part in enumerate(parts):
            if not living[place] and not all(map(ground.ended, part)):
                living[place] = ground.live(part)
        ground.pause(LONGEST_PAUSE_SECONDS)
        place = ground.chance.randrange(AT_ONCE)
        if pid := living[place]:
            if os.waitpid(pid, os.WNOHANG) == (0, 0):
                ground.kill("fork", pid)
                os.waitpid(pid, 0)
            living[place] = 0
    for pid in filter(None, living.values()):
        os.waitpid(pid, 0)
    for _ in range(5):  # who lost three hosts in a row waits for a person, as do children
        if not all(map(ground.ended, sessions)):
            os.waitpid(ground.live([*sessions, *ground.children()]), 0)
    assert all(map(ground.ended, sessions)), "a session is stuck"


def judge_forked(ground, sessions, undisturbed):
    """Judge the sessions, and also children, budgets and the secret."""
    judge(ground, sessions, undisturbed)
    before = ground.seen
    ground.position, ground.seen = 0, defaultdict(list)
    ground.streams()
    for stream, events in before.items():
        if ground.seen[stream][: len(events)] != events:
            ground.tally.fault("lost", f"{ground.log} {stream}: acknowledged events")
    run(judge_more(ground))
    for path in ground.folder.glob("log.db*"):
        if PLANTED.encode() in path.read_bytes():
            ground.tally.fault("secrets", f"{path} has the secret")


async def judge_more(ground):
    """Look at each moment of each budget, and at the children and calls of all sessions."""
    folders = [folder.name for folder in ground.folder.iterdir() if folder.is_dir()]
    lines = [line for name in folders for line in ground.journal(name)]
    began = Counter(line[1] for line in lines if line[0] == "start")
    async with open_log(ground.log, read_only=True) as log:
        for stream in [*ground.seen]:
            if stream.startswith("budget-"):
                await judge_budget(ground, log.journal(), stream)
            elif stream.startswith("session-"):
                await judge_children(ground, log.journal(), stream, began)


async def judge_budget(ground, journal, stream):
    """Hold what is spent and reserved against each limit, after each event."""
    state = BUDGET.initial_state
    async for _, fact in journal.read(stream):
        state = BUDGET.evolve(state, fact)
        for node in state.nodes.values():
            taken = node.settled.usd + node.reserved.usd
            if taken > node.limits.get("max_cost", taken):
                ground.tally.fault("passed", f"{ground.log} {stream}: {taken}")


async def judge_children(ground, journal, stream, began):
    """Say which children's ends were not told once, and which undeclared calls began again."""
    told = [fact async for _, fact in journal.read(sibling(stream, "inbox"))]
    ends = Counter(fact.child for fact in told if isinstance(fact, ChildEnded))
    facts = [fact async for _, fact in journal.read(stream)]
    for fact in facts:
        if isinstance(fact, CallDelegated):
            ground.tally.children += 1
            if ends[fact.child] != 1:
                ground.tally.fault("untold", f"{stream}: {fact.child} {ends[fact.child]} times")
    pays = {f.effect for f in facts if isinstance(f, ToolStarted) and f.tool == "pay"}
    for effect in pays:
        if began[f"{stream}/{effect}"] > 1:
            ground.tally.fault("repeated", f"{stream}/{effect} began more than once")
