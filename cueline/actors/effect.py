"""How a session's effects are carried out; each brings back facts, not yet recorded.

What comes from outside is cleaned here, before the rules see it (I11).
"""

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Protocol, TypeVar

from pydantic import JsonValue

from cueline.actors.approval_gate import ApprovalName, GatePort
from cueline.actors.model import Model, ModelFactory, ModelRequest
from cueline.actors.runner import CallName, RunnerPort, ToolReport
from cueline.actors.tool import ToolOrder
from cueline.clock import Clock
from cueline.deciders.session import SessionState
from cueline.deciders.session.due import AskApproval, CallModel, CloseApproval
from cueline.errors import (
    ProviderRefusedError,
    ProviderUnavailableError,
    RunnerBusyError,
    RunnerGoneError,
)
from cueline.events.agent import AgentSpec, ToolSpec, Workspace
from cueline.events.approval import ApprovalOpened
from cueline.events.clean import Redactor, clean
from cueline.events.journal import Journal
from cueline.events.message import Cost, ToolCall, Usage
from cueline.events.session import (
    ApprovalRequested,
    ApprovalResolved,
    ModelFailed,
    ModelReplied,
    SessionEvent,
    SessionWaiting,
    ToolFailed,
    ToolReconciled,
    ToolReturned,
)
from cueline.events.store import BLOB_LIMIT

RUNNER_SECONDS = 600.0
"""After so long a silence a runner is gone (its calls ended themselves before)."""
REACH_SECONDS = 2.0
"""How long a runner is tried before the session rests."""
OUTPUT_CHARACTERS = 50_000
"""What the model is told of one output, at most."""
_HEAD, _TAIL = 40_000, 8_000
_LARGE = 1024 * 1024
_POLL_SECONDS = 0.05

Fact = TypeVar("Fact", bound=SessionEvent)


class RunnerDirectory(Protocol):
    """Which runners there are."""

    def choose(self, tool: ToolSpec, workspace: Workspace | None) -> str | None:
        """Return the incarnation of a runner that can reach what the call needs."""
        ...

    def find(self, incarnation: str) -> RunnerPort | None:
        """Return the runner of that incarnation, if it can be reached."""
        ...

    async def gone(self, incarnation: str) -> str | None:
        """Return the evidence that the incarnation is gone; None while it may live."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Collaborators:
    """Whom a session host works with."""

    clock: Clock
    journal: Callable[[AgentSpec | None], Journal]
    """The log, cleaned of the secrets of that agent."""
    redactor: Callable[[AgentSpec], Redactor]
    models: ModelFactory
    runners: RunnerDirectory
    gate: GatePort
    check_call: Callable[[ToolSpec, Mapping[str, JsonValue]], str | None]
    """What the model is told of arguments that do not fit; None when they do."""
    price: Callable[[AgentSpec, str, Usage], Cost | None]


class Performer:
    """Carries out the effects of one session."""

    def __init__(self, stream: str, agent: AgentSpec, model: Model, parts: Collaborators) -> None:
        self._stream = stream
        self._agent = agent
        self._model = model
        self._parts = parts
        self._redactor = parts.redactor(agent)
        self._journal = parts.journal(agent)
        self._tools = {tool.name: tool for tool in agent.tools}

    def clean(self, fact: Fact) -> Fact:
        """Return *fact* without secrets and without what cannot be kept."""
        return clean(fact, self._redactor)[0]

    async def call_model(
        self, effect: CallModel, turn: int, messages: list[bytes]
    ) -> list[SessionEvent]:
        """Ask the model once."""
        started = self._parts.clock.now()
        request = ModelRequest(
            session=self._stream,
            effect=effect.effect,
            turn=turn,
            attempt=effect.attempt,
            agent=self._agent,
            messages=messages,
        )
        try:
            reply = await self._model.reply(request)
        except ProviderUnavailableError as error:
            return [self._model_failed(effect, error.kind, error.message, error.retry_after)]
        except ProviderRefusedError as error:
            return [self._model_failed(effect, error.kind, error.message)]
        except asyncio.CancelledError:
            return [self._model_failed(effect, "cancelled", "it was stopped")]
        except Exception as error:  # noqa: BLE001 - a provider's bug is this attempt's failure
            return [self._model_failed(effect, "unknown", f"{type(error).__name__}: {error}")]
        replied = ModelReplied(
            effect=effect.effect,
            attempt=effect.attempt,
            content=reply.content,
            calls=tuple(self._checked(call) for call in reply.calls),
            stop_reason=reply.stop_reason,
            usage=reply.usage,
            cost=self._parts.price(self._agent, reply.model, reply.usage),
            model=reply.model,
            seconds=_seconds(self._parts.clock.now() - started),
        )
        return [self.clean(replied)]

    def _checked(self, call: ToolCall) -> ToolCall:
        tool = self._tools.get(call.name)
        if tool is None or call.malformed is not None:
            return call
        problem = self._parts.check_call(tool, call.arguments)
        return call.model_copy(update={"problem": problem}) if problem else call

    def _model_failed(
        self, effect: CallModel, kind: str, message: str, retry_after: float | None = None
    ) -> ModelFailed:
        return self.clean(
            ModelFailed(
                effect=effect.effect,
                attempt=effect.attempt,
                kind=kind,
                message=message,
                failed_at=self._parts.clock.now(),
                retry_after=retry_after,
            )
        )

    def order(self, effect: str, attempt: int, call: ToolCall, *, runner: str, epoch: int,
              digest: str) -> ToolOrder:  # fmt: skip
        """Return what a runner is told."""
        return ToolOrder(
            session=self._stream,
            effect=effect,
            attempt=attempt,
            key=f"{self._stream}/{effect}",
            runner=runner,
            epoch=epoch,
            tool=self._tools[call.name],
            arguments=call.arguments,
            workspace=self._agent.workspace,
            digest=digest,
            secrets=self._agent.secrets,
        )

    async def run_tool(self, order: ToolOrder) -> list[SessionEvent]:
        """Have a runner run the call, and bring back its outcome."""
        port = self._parts.runners.find(order.runner)
        name = name_of(order)
        if port is None:
            return await self.recover_tool(name, order.effect)
        try:
            report = await port.execute(order)
        except RunnerBusyError as error:
            return [self._tool_failed(name, order.effect, "not_started", str(error))]
        except RunnerGoneError:
            return await self.recover_tool(name, order.effect)
        return [await self._reported(name, order.effect, report)]

    async def recover_tool(self, name: CallName, effect: str) -> list[SessionEvent]:
        """Find out what became of a call that was started; it runs again only if it may."""
        clock, runners = self._parts.clock, self._parts.runners
        until = clock.now() + timedelta(seconds=REACH_SECONDS)
        while clock.now() < until:
            evidence = await runners.gone(name.runner)
            if evidence is not None:
                return [self._tool_failed(name, effect, "lost", evidence)]
            port = runners.find(name.runner)
            if port is not None:
                try:
                    report = await port.outcome(name)
                except RunnerGoneError:
                    pass
                else:
                    if report is None:
                        return [self._tool_failed(name, effect, "not_started", "never begun")]
                    return [await self._reported(name, effect, report)]
            await clock.sleep(_POLL_SECONDS)
        return [
            SessionWaiting(
                kind="runner",
                why=f"runner {name.runner} cannot be reached",
                deadline_at=clock.now() + timedelta(seconds=RUNNER_SECONDS),
                effects=(effect,),
            )
        ]

    async def _reported(self, name: CallName, effect: str, report: ToolReport) -> SessionEvent:
        if report.outcome == "failed":
            return self._tool_failed(name, effect, report.kind, report.message, report.seconds)
        text, cleaned = await self._text(report.content)
        size = report.truncated_from or len(report.content)
        whole = None
        if len(text) > OUTPUT_CHARACTERS:
            whole = await self._journal.put_blob(text.encode()[:BLOB_LIMIT])
            left_out = len(text) - _HEAD - _TAIL
            text = (
                f"{text[:_HEAD]}\n[… {left_out:,} characters are left out here; "
                f"the whole output of {size:,} bytes is kept as blob {whole} …]\n{text[-_TAIL:]}"
            )
        return ToolReturned(
            effect=effect,
            attempt=name.attempt,
            output=text,
            whole=whole,
            size=size if whole else None,
            cleaned=cleaned,
            seconds=round(report.seconds, 3),
        )

    async def _text(self, content: bytes) -> tuple[str, bool]:
        if len(content) > _LARGE:
            return await asyncio.to_thread(self._decode, content)
        return self._decode(content)

    def _decode(self, content: bytes) -> tuple[str, bool]:
        try:
            text, replaced = content.decode(), False
        except UnicodeDecodeError:
            text, replaced = content.decode(errors="replace"), True
        text, cleaned = clean(text, self._redactor)
        return text, cleaned or replaced

    def _tool_failed(
        self, name: CallName, effect: str, kind: str, message: str, seconds: float = 0.0
    ) -> ToolFailed:
        return self.clean(
            ToolFailed(
                effect=effect,
                attempt=name.attempt,
                kind=kind,
                message=message[:OUTPUT_CHARACTERS],
                failed_at=self._parts.clock.now(),
                seconds=round(seconds, 3),
            )
        )

    async def reconcile(self, order: ToolOrder) -> list[SessionEvent]:
        """Ask the tool itself what became of a call in doubt."""
        chosen = self._parts.runners.choose(order.tool, order.workspace)
        port = self._parts.runners.find(chosen) if chosen else None
        if port is None:
            return [_unreachable(order, self._parts.clock.now())]
        try:
            finding = await port.reconcile(order)
        except RunnerGoneError:
            return [_unreachable(order, self._parts.clock.now())]
        told = finding.output or "It took effect." if finding.outcome == "happened" else ""
        return [
            self.clean(
                ToolReconciled(effect=order.effect, outcome=finding.outcome, by="tool", output=told)
            )
        ]

    async def ask(
        self, effect: AskApproval, call: ToolCall, state: SessionState, epoch: int
    ) -> list[SessionEvent]:
        """Have the gate ask a person, or grant at once where that was chosen at the start."""
        policy = self._agent.policy
        now = self._parts.clock.now()
        name = ApprovalName(self._stream, effect.approval)
        doubt = effect.question == "did_it_happen"
        rule = "in doubt" if doubt else "sensitive"
        opened = ApprovalOpened(
            session=self._stream,
            effect=effect.effect,
            digest=effect.digest,
            question=effect.question,
            tool=call.name,
            arguments=call.arguments,
            summary=summary(call),
            rationale="" if not doubt else "Its runner died while it ran. Did it take effect?",
            rule=rule,
            epoch=epoch,
            opened_at=now,
            deadline_at=now + timedelta(seconds=policy.approval_seconds),
        )
        granted_by = "auto:cli-flag" if policy.auto_approve and not doubt else None
        held = await self._parts.gate.open(name, self.clean_opened(opened), granted_by)
        requested = ApprovalRequested(
            effect=effect.effect,
            approval=effect.approval,
            digest=held.digest,
            deadline_at=held.deadline_at,
            question=effect.question,
            rule=rule,
        )
        resolved = _resolved(effect.approval, held.answer.verdict, held.answer.by)
        return [requested, *resolved]

    def clean_opened(self, opened: ApprovalOpened) -> ApprovalOpened:
        """Return the question without secrets."""
        return clean(opened, self._redactor)[0]

    async def close(self, effect: CloseApproval) -> list[SessionEvent]:
        """Tell the gate that the need, or the time, has ended."""
        name = ApprovalName(self._stream, effect.approval)
        if effect.superseded_by is not None:
            answer = await self._parts.gate.supersede(name, effect.superseded_by)
        else:
            answer = await self._parts.gate.expire(name, self._parts.clock.now())
        return _resolved(effect.approval, answer.verdict, answer.by or "clock", answer.note)


def name_of(order: ToolOrder) -> CallName:
    """Return by what the runner knows the call."""
    return CallName(order.session, order.key, order.attempt, order.runner, order.epoch)


def summary(call: ToolCall) -> str:
    """Return what a person is shown of a call: the tool and its arguments, in short."""
    parts = [f"{name}={str(value)[:200]!r}" for name, value in call.arguments.items()]
    return f"{call.name}({', '.join(parts)})"


def _resolved(approval: str, verdict: object, by: str, note: str = "") -> list[SessionEvent]:
    if verdict is None:
        return []
    return [
        ApprovalResolved.model_validate(
            {"approval": approval, "verdict": verdict, "by": by, "note": note}
        )
    ]


def _unreachable(order: ToolOrder, now: datetime) -> SessionWaiting:
    return SessionWaiting(
        kind="runner",
        why="no runner can be reached",
        deadline_at=now + timedelta(seconds=RUNNER_SECONDS),
        effects=(order.effect,),
    )


def _seconds(duration: timedelta) -> float:
    return round(duration.total_seconds(), 3)
