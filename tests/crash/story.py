"""One session that has a call of every kind, and a person who answers."""

from collections import Counter

from cueline.actors.runner import Runner
from cueline.actors.tool_port import ReconcileFinding
from cueline.events.blob_ref import blobs_in
from cueline.events.inbox import DecisionGiven
from cueline.events.session import (
    ToolFailed,
    ToolInDoubt,
    ToolReconciled,
    ToolReturned,
    ToolStarted,
)
from cueline.events.store import Draft, Write
from cueline.stores import MemoryStore
from cueline.testing.clock import FakeClock
from cueline.testing.crash import CrashPoint, Outside, World
from cueline.testing.crash_point import CrashingRunner
from cueline.testing.fakes import (
    JournalingExecutor,
    Start,
    TurnModel,
    agent_spec,
    asks_for,
    says,
    tool_spec,
)

TOOLS = (
    tool_spec("read", "read_only"),
    tool_spec("save", "idempotent"),
    tool_spec("pay"),
    tool_spec("post", "reconcile"),
    tool_spec("deploy", sensitive=True),
)
SAID = [
    asks_for(("read", {"n": 1}), ("read", {"n": 2}), ("read", {"n": 3})),
    asks_for(("save", {"n": 4}), ("read", {"n": 5}), ("pay", {"n": 6}), ("read", {"n": 7})),
    asks_for(("post", {"n": 8})),
    asks_for(("deploy", {"n": 9})),
    asks_for(("unheard_of", {}), ("read", {"n": 10})),
    says("All is done."),
]
OUTCOMES = (ToolReturned, ToolFailed, ToolReconciled, ToolInDoubt)
EFFECTS = 10
"""Calls that are given to a runner."""
UNDECLARED = ("pay", "deploy")
SESSION = "session-default/story"


async def act(order):
    if order.arguments["n"] == 5:
        return b"x" * 20_000 + b"\xff"
    return f"{order.tool.name} {order.arguments['n']} is done"


def outside(said=SAID, **policy):
    """Return an outside whose tools write down their starts, and an agent that uses them all."""
    starts = []
    executor = JournalingExecutor(
        dict.fromkeys(("read", "save", "pay", "post", "deploy"), act), starts
    )
    executor.reconciling = {"post": lambda key: found(starts, key)}
    place = Outside.new(TurnModel(said), executor)
    return place, agent_spec(*TOOLS, policy=policy)


def found(starts, key):
    """Say what the tool knows of the call: what it wrote down itself."""
    if any(start.key == key for start in starts):
        return ReconcileFinding("happened", "post 8 is done")
    return ReconcileFinding("did_not_happen")


async def answer(place, session=SESSION):
    """Have a person who looks at the tools' own journal answer; say whether anything was asked."""
    asked = [call for call in (await place.state(session)).open_calls if call.asking]
    for call in asked:
        happened = any(start.key == f"{session}/{call.effect}" for start in place.executor.starts)
        said = "happened" if happened else "run_again"
        decision = DecisionGiven(
            approval=call.approval.id,
            digest=call.approval.digest,
            verdict="grant",
            by="ann",
            resolution=None if call.approval.question == "may_it_run" else said,
        )
        await place.say(session, decision)
    return asked


async def drive(place, life=None, runner=None, session=SESSION, go_on=answer):
    """Let a new process drive the session to its end or its own.

    Whenever it rests, *go_on* brings what it rests for, and says whether that was anything.
    """
    if runner is not None:
        runner = CrashingRunner(runner, life or CrashPoint())
    world = World(place, life, runner=runner)
    # As `resume` does: a cut inside an append leaves work that no index lists.
    world.host.activate(session)
    await world.rest(within=60)
    while not world.life.dead and await go_on(place, session):
        await world.rest(within=60)
    await world.kill()
    return world


def runner_of(place, name="runner-1"):
    """Return a runner of a process of its own, which outlives hosts."""
    runner = Runner(name, place.executor, lambda: place.clock.now().timestamp())
    place.runners.ports[name] = runner
    return runner


async def open_calls(place):
    """Return the calls that were started and have no outcome yet."""
    facts = await place.facts(SESSION)
    started = {f.effect: f.tool for f in facts if isinstance(f, ToolStarted)}
    return {
        e: tool
        for e, tool in started.items()
        if e not in {f.effect for f in facts if isinstance(f, OUTCOMES)}
    }


async def doubts(place):
    """Return how often each call was in doubt."""
    return Counter(f.effect for f in await place.facts(SESSION) if isinstance(f, ToolInDoubt))


def masked(messages, effects):
    """Return what the model was told, without the results of *effects*."""
    kept, turn, index = [], 0, 0
    for message in messages:
        if message.startswith(b'{"role":"assistant"'):
            turn, index = turn + 1, 0
        if message.startswith(b'{"role":"tool"'):
            effect, index = f"{turn}.{index}", index + 1
            kept.append(b"?" if effect in effects else message)
        else:
            kept.append(message)
    return kept


async def undisturbed(make=outside, drive=drive, **asked):
    """Return an outside on which the session ended without any crash, and who drove it."""
    place, agent = make()
    await place.start("story", agent, **asked)
    return place, await drive(place)


def starts_of(place):
    """Return how often each call was begun, by the tools' own word."""
    return Counter(start.key for start in place.executor.starts)


async def cut(place, position, said=SAID, make=outside):
    """Return an outside with the log up to *position*, where all that was started has run."""
    cut_off, _ = make(said)
    cut_off.clock = FakeClock(place.clock.now())
    cut_off.store = store = MemoryStore(cut_off.clock)
    cut_off.runners.dead = dict(place.runners.dead)
    for content, _ in place.store._tables.blobs.values():
        await store.put_blob(content)
    async for event in place.store.read_all(limit=position):
        epoch = event.epoch or None
        if epoch and (await store.head(event.stream)).epoch < epoch:
            await store.acquire(event.stream, "one-before", epoch - 1)
        write = Write(event.stream, [draft_of(event)], event.version - 1, epoch)
        await store.append([write], f"cut.{event.position}")
    for fact in await cut_off.facts(SESSION):
        if isinstance(fact, ToolStarted):
            key = f"{SESSION}/{fact.effect}"
            cut_off.executor.starts.append(Start(fact.tool, key, fact.attempt, 0))
    return cut_off


def draft_of(event):
    """Return *event* as it was appended."""
    return Draft(
        event.type, event.schema, event.payload, event.occurred_us, event.actor, event.attrs,
        event.correlation_id, event.causation_id, event.step, blobs_in(event.payload),
    )  # fmt: skip
