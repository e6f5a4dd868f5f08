"""Fakes of the ports: a model, tools, runners, and the index of work."""

import os
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import cast

from pydantic import JsonValue

from cueline.actors.dispatcher import Work
from cueline.actors.model_port import Delta, DeltaSink, ModelReply, ModelRequest, drop_delta
from cueline.actors.rule_failure import folded
from cueline.actors.runner import RunnerPort
from cueline.actors.runner_registry import ClaimedRun
from cueline.actors.tool_port import (
    ReconcileFinding,
    ToolOrder,
    ToolOutput,
    ToolQuestion,
    ToolTask,
)
from cueline.deciders.matching import Offer, Unmet, counted, least_unmet
from cueline.deciders.matching import unmet as unmet_by
from cueline.deciders.session import DRIVEN, SessionState, session_of
from cueline.errors import CorruptEventError, ProviderRefusedError, UnknownEventTypeError
from cueline.events.agent import AgentSpec, Declared, ToolSpec
from cueline.events.agent_parts import Demands
from cueline.events.codec import Redacted
from cueline.events.inbox import StartAsked
from cueline.events.journal import Journal
from cueline.events.message import TextBlock, ToolCall
from cueline.events.session import SessionContinued, SessionEvent, WaitKind
from cueline.events.stream import is_compaction, sibling
from cueline.tools.result import output_of

Reply = ModelReply | Exception | Callable[[], Awaitable[ModelReply]]


def says(text: str) -> ModelReply:
    """Return a reply without calls."""
    return ModelReply(content=(TextBlock(text=text),), stop_reason="end_turn", model="fake")


def asks_for(*calls: tuple[str, dict[str, JsonValue]]) -> ModelReply:
    """Return a reply with tool calls, by name and arguments."""
    asked = tuple(
        ToolCall(id=f"call_{place}", name=name, arguments=arguments)
        for place, (name, arguments) in enumerate(calls)
    )
    return ModelReply(calls=asked, stop_reason="tool_use", model="fake")


class TurnModel:
    """Answers by turn, or by turn and attempt, without a count of its own; see `Model`.

    So it continues at the right place after a crash, and one instance serves any
    number of sessions.
    """

    def __init__(self, replies: Sequence[Reply] | Mapping[tuple[int, int], Reply]) -> None:
        self._replies = replies
        self.asked: list[ModelRequest] = []
        self.summary: Reply = says("A summary.")
        """The reply to each request for a summary."""
        self.closed = False

    async def reply(self, request: ModelRequest, deltas: DeltaSink = drop_delta) -> ModelReply:
        self.asked.append(request)
        found = self.summary
        if not is_compaction(request.effect):
            found = self._reply_for(request.turn, request.attempt)
        if isinstance(found, Exception):
            raise found
        reply = found if isinstance(found, ModelReply) else await found()
        for block in reply.content:
            if isinstance(block, TextBlock):
                deltas(Delta("text", block.text))
        return reply

    def _reply_for(self, turn: int, attempt: int) -> Reply:
        if isinstance(self._replies, Mapping):
            found = self._replies.get((turn, attempt))
        else:
            found = self._replies[turn - 1] if turn <= len(self._replies) else None
        if found is None:
            raise ProviderRefusedError("invalid_request", f"no reply for turn {turn}, {attempt}")
        return found

    async def close(self) -> None:
        self.closed = True


def tool_spec(
    name: str,
    declared: Declared = "nothing",
    *,
    sensitive: bool = False,
    needs_workspace: bool = False,
) -> ToolSpec:
    """Return the recorded form of a tool that takes any arguments."""
    return ToolSpec(
        name=name,
        description=f"The tool {name}.",
        parameters={"type": "object"},
        declared=declared,
        sensitive=sensitive,
        target=f"tests:{name}",
        needs_workspace=needs_workspace,
        digest=f"digest of {name}",
    )


@dataclass(frozen=True, slots=True)
class Start:
    """One start of a tool, as the tool itself reports it."""

    tool: str
    key: str
    attempt: int
    pid: int


Act = Callable[[ToolOrder], Awaitable[JsonValue | bytes]]


@dataclass(slots=True)
class JournalingExecutor:
    """A `ToolExecutor` that runs plain functions, and lists each start."""

    tools: Mapping[str, Act]
    starts: list[Start] = field(default_factory=list)
    """Pass the same list to the next executor: effects of tools outlive a process."""
    reconciling: Mapping[str, Callable[[str], ReconcileFinding]] = field(default_factory=dict)
    closed: bool = False

    async def call(self, order: ToolOrder) -> ToolOutput | ToolQuestion | ToolTask:
        self.starts.append(Start(order.tool.name, order.key, order.attempt, os.getpid()))
        said = await self.tools[order.tool.name](order)
        if isinstance(said, ToolQuestion | ToolTask):
            return said
        given = output_of(said)
        return ToolOutput(given.content, 0.0, given.truncated_from, given.media_type)

    async def reconcile(self, order: ToolOrder) -> ReconcileFinding:
        return self.reconciling[order.tool.name](order.key)

    async def close(self) -> None:
        self.closed = True


@dataclass(slots=True)
class Runners:
    """The runners that a test defines; see `RunnerDirectory`."""

    ports: dict[str, RunnerPort] = field(default_factory=dict)
    dead: dict[str, str] = field(default_factory=dict)
    """Incarnations that are gone, with the evidence."""
    silent: set[str] = field(default_factory=set)
    """Living incarnations that do not answer."""
    reach: bool = True
    """Whether a workspace can be reached."""

    def choose(self, demands: Demands, full: Collection[str] = ()) -> str | None:
        """See `RunnerDirectory.choose`; these runners have no labels and no resources."""
        machine = demands.machine if self.reach else None
        meets = (name for name in self.ports if not unmet_by(Offer(name, machine), demands))
        return next((each for each in meets if each not in full), None)

    def unmet(self, demands: Demands) -> Demands:
        machine = demands.machine if self.reach else None
        return least_unmet([Offer(name, machine) for name in self.ports], demands)

    def find(self, incarnation: str) -> RunnerPort | None:
        return self.ports.get(incarnation)

    async def answers(self, incarnation: str) -> bool:
        return incarnation in self.ports and incarnation not in self.silent

    async def gone(self, incarnation: str) -> str | None:
        return self.dead.get(incarnation)


class FoldedIndex:
    """A `WorkIndex` and `RunIndex` that folds the whole log each time."""

    def __init__(self, journal: Journal) -> None:
        self._journal = journal

    async def overdue(self, now: datetime) -> AsyncIterator[Sequence[Work]]:
        for since, work in await self._work():
            if _EVER < since <= now:
                yield [work]

    async def pending(self, after: str) -> Sequence[Work]:
        found = [work for since, work in await self._work() if since == _EVER]
        return [work for work in found if work.stream > after]

    async def _work(self) -> list[tuple[datetime, Work]]:
        """Return the sessions with work, each with the time from which it has work."""
        found = []
        for stream, state in (await self._states()).items():
            inbox = await self._journal.store.head(sibling(stream, "inbox"))
            unread = inbox.version > state.inbox_read
            since = _EVER if unread or _is_driven(state) else _deadline(state)
            if since is not None:
                found.append((since, Work(stream, unread)))
        return sorted(found)

    async def driven(self) -> Sequence[str]:
        states = await self._states()
        return [stream for stream, state in states.items() if state.status in DRIVEN]

    async def waiting(
        self, kind: WaitKind, offers: Collection[Offer] | None = None
    ) -> Sequence[str]:
        waits = [(s, state.waiting) for s, state in (await self._states()).items() if state.waiting]
        found = [(stream, wait.cause) for stream, wait in waits if wait.kind == kind]
        return [
            stream
            for stream, cause in found
            if offers is None
            or not (
                cause.code == "queued" or (cause.is_unmet and least_unmet(offers, cause.demands))
            )
        ]

    async def unmet(self) -> Sequence[Unmet]:
        waits = [state.waiting for state in (await self._states()).values()]
        causes = [wait.cause for wait in waits if wait and wait.kind == "runner"]
        return counted(each.demands for each in causes if each.is_unmet)

    async def claimed(self) -> Sequence[ClaimedRun]:
        found = []
        for stream, state in (await self._states()).items():
            if state.run is not None and state.run.runner and not state.finished:
                inbox = await self._journal.store.head(sibling(stream, "inbox"))
                unread = inbox.version > state.inbox_read
                found.append(ClaimedRun(stream, state.run.runner, unread))
        return found

    async def oldest(self, blueprint: str, limit: int) -> Sequence[str]:
        queue: dict[str, None] = {}
        later: dict[str, None] = {}
        async for recorded, fact in self._journal.read_all(0):
            stream = sibling(recorded.stream, "session")
            if isinstance(fact, StartAsked) and fact.run and fact.run.blueprint == blueprint:
                (queue if fact.schedule is None else later)[stream] = None
            elif stream in later and isinstance(fact, SessionContinued) and fact.by == "deadline":
                queue[stream] = None
        states = await self._states()
        return [each for each in queue if not states[each].finished][:limit]

    def close(self) -> None:
        """See `WorkIndex.close`; there is nothing to close."""

    async def _states(self) -> dict[str, SessionState]:
        of_sessions = self._journal.store.read_all(categories={"inbox", "session"})
        streams = {sibling(recorded.stream, "session") async for recorded in of_sessions}
        states = {}
        for stream in sorted(streams):
            state = session_of(stream)
            # The events before an unreadable one still count.
            with suppress(CorruptEventError, UnknownEventTypeError):
                async for _, fact in self._journal.read(stream):
                    if not isinstance(fact, Redacted):
                        state = folded(state, cast("SessionEvent", fact))
            states[stream] = state
        return states


_EVER = datetime.min.replace(tzinfo=UTC)


def _is_driven(state: SessionState) -> bool:
    return state.status in DRIVEN and state.waiting is None


def _deadline(state: SessionState) -> datetime | None:
    return None if state.waiting is None else state.waiting.deadline_at


def agent_spec(*tools: ToolSpec, **fields: object) -> AgentSpec:
    """Return a recorded agent with *tools* and the other fields."""
    return AgentSpec.model_validate(
        {"name": "tester", "provider": "fake", "model": "fake", "tools": tools, **fields}
    )
