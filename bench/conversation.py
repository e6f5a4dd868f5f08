"""The conversation of the benches: run by a host, or only recorded in a log."""

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

from bench.text import ANSWERED, ASKED, SAID, text
from cueline.actors.approval_gate import ApprovalGate
from cueline.actors.cost_ledger import CostLedger
from cueline.actors.entity import Entity, PendingAppend
from cueline.actors.inbox import ask_start
from cueline.actors.model_port import DeltaSink, Model, ModelReply, ModelRequest, drop_delta
from cueline.actors.presence import presence_of
from cueline.actors.runner import Runner
from cueline.actors.session_host import SessionHost
from cueline.clock import Clock
from cueline.errors import CuelineError
from cueline.events.agent import AgentSpec, Limits
from cueline.events.inbox import StartAsked
from cueline.events.message import TextBlock, ToolCall, Usage
from cueline.events.session import (
    ModelReplied,
    ModelStarted,
    SessionStarted,
    ToolReturned,
    ToolStarted,
)
from cueline.runtime.actor_factory import collaborators
from cueline.runtime.inline import LocalRunnerDirectory
from cueline.runtime.open_log import OpenLog, open_log
from cueline.tools.arguments import read_value
from cueline.tools.executor import ProcessToolExecutor
from cueline.tools.tool import tool

STREAM = "session-default/bench"
_TURNS_AN_APPEND = 100


@tool(read_only=True)
async def look_up(query: str) -> str:
    """Return a text of fixed length for *query*."""
    return text(int(query[:6]), ANSWERED)


AGENT = AgentSpec(
    name="bench",
    provider="scripted",
    model="talker",
    instructions="Look up what you are asked for.",
    tools=(look_up.spec(),),
    limits=Limits(max_turns=1_000_000),
)


class Talker:
    """A model whose reply depends only on the turn; it stops after *turns* turns."""

    def __init__(self, turns: int) -> None:
        self._turns = turns

    async def reply(self, request: ModelRequest, deltas: DeltaSink = drop_delta) -> ModelReply:  # noqa: ARG002 - the port asks it
        """See `Model.reply`."""
        calls = (call(request.turn),) if request.turn <= self._turns else ()
        return ModelReply(
            content=(TextBlock(text=text(request.turn, SAID)),),
            calls=calls,
            stop_reason="tool_use" if calls else "end_turn",
            usage=Usage(input=1_000, output=200),
            model="talker",
        )

    async def close(self) -> None:
        """See `Model.close`."""


def call(turn: int) -> ToolCall:
    """Return the tool call that the model requests in *turn*."""
    return ToolCall(id=f"call_{turn}", name="look_up", arguments={"query": text(turn, ASKED)})


async def play(path: Path, turns: int, goal: str = "Begin.") -> float:
    """Run *turns* turns in a new durable log, and return the seconds."""
    async with open_log(path) as log, hosted(log, Talker(turns)) as (host, _):
        await _ask(log, goal)
        began = time.perf_counter()
        host.activate(STREAM)
        await host.settled(STREAM)
        return time.perf_counter() - began


@asynccontextmanager
async def hosted(
    log: OpenLog, model: Model, clock: Clock | None = None
) -> AsyncIterator[tuple[SessionHost, Runner]]:
    """Run a host whose sessions all use *model*, and the runner of their calls."""
    here = presence_of("inline")
    runner = Runner(here.incarnation, ProcessToolExecutor(), asyncio.get_running_loop().time)
    gate, ledger = ApprovalGate(log.journal()), CostLedger(log.journal())
    dependencies = collaborators(log, LocalRunnerDirectory(runner, here, log.board), gate, ledger)
    dependencies = replace(dependencies, models=lambda _: model, clock=clock or log.clock)
    host = SessionHost(here.incarnation, dependencies, on_trouble=refuse)
    yield host, runner
    await host.close()
    await runner.close()


async def loaded(log: OpenLog, owner: str) -> Entity:
    """Return the acquired session with its folded state and prompt."""
    entity = Entity(STREAM, owner, log.journal(), log.clock, report=refuse, read_output=read_value)
    await entity.load()
    return entity


async def record(log: OpenLog, turns: int, *, rests: bool = False) -> None:
    """Record *turns* turns, with five events a turn and a hundred turns an append.

    With *rests*, the session rests after each append but the last.
    """
    await _ask(log)
    entity = await loaded(log, "bench")
    steps = PendingAppend(entity.state)
    steps.take(
        SessionStarted(agent=AGENT, goal="Begin.", open=False, attached=False, epoch=entity.epoch)
    )
    for turn in range(1, turns + 1):
        _take_turn(steps, turn, entity.epoch)
        if turn % _TURNS_AN_APPEND == 0 or turn == turns:
            await entity.record(steps)
            steps = PendingAppend(entity.state)
            if rests and turn < turns:
                await entity.rest()


async def _ask(log: OpenLog, goal: str = "Begin.") -> None:
    asked = StartAsked(agent=AGENT, goal=goal, asked_at=datetime.now(UTC))
    await ask_start(log.journal(), "bench", asked)


def _take_turn(steps: PendingAppend, turn: int, epoch: int) -> None:
    model, lookup = f"{turn}.m", f"{turn}.0"
    steps.take(ModelStarted(effect=model, attempt=1))
    steps.take(
        ModelReplied(
            effect=model,
            attempt=1,
            content=(TextBlock(text=text(turn, SAID)),),
            calls=(call(turn),),
            stop_reason="tool_use",
            usage=Usage(input=1_000, output=200),
            model="talker",
        )
    )
    steps.take(
        ToolStarted(
            effect=lookup, attempt=1, tool="look_up", runner="bench", epoch=epoch, rule="read_only"
        )
    )
    steps.take(ToolReturned(effect=lookup, attempt=1, output=text(turn, ANSWERED)))


def refuse(stream: str, error: CuelineError) -> None:
    """Raise for any session that cannot run."""
    raise AssertionError(f"{stream}: {error}")
