"""An agent and the facts of its sessions, for examples in tests."""

from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Literal

from cueline.deciders.session import order_digest
from cueline.deciders.session.wait import task_cause
from cueline.events.agent import AgentSpec, Declared, Fallback, Limits, Policy, ToolSpec
from cueline.events.agent_parts import BreakerPolicy, RetryPolicy
from cueline.events.inbox import DecisionGiven, InboxMessage, MessageSent, Resolution
from cueline.events.input_request import InputRequest, digest_of
from cueline.events.message import TextBlock, ToolCall
from cueline.events.session import (
    ApprovalRequested,
    GateAnswer,
    MessageReceived,
    ModelFailed,
    ModelReplied,
    ModelStarted,
    SessionEvent,
    SessionForked,
    SessionStarted,
    SessionWaiting,
    ToolAsked,
    ToolDeferred,
    ToolFailed,
    ToolReturned,
    ToolStarted,
)

NOW = datetime(2026, 1, 1, tzinfo=UTC)


def later(seconds: float) -> datetime:
    """Return the moment *seconds* after `NOW`."""
    return NOW + timedelta(seconds=seconds)


def tool(
    name: str, declared: Declared = "nothing", *, sensitive: bool = False, critical: bool = True
) -> ToolSpec:
    """Return a tool."""
    return ToolSpec(
        name=name,
        description=name,
        parameters={},
        declared=declared,
        sensitive=sensitive,
        critical=critical,
        target=f"examples:{name}",
        digest=name,
    )


TOOLS = (
    tool("look", "read_only"),
    tool("put", "idempotent"),
    tool("pay", "reconcile"),
    tool("shout"),
    tool("delete", sensitive=True),
    tool("burn", "idempotent", sensitive=True),
    tool("wire", "reconcile", sensitive=True),
    tool("peek", "read_only", critical=False),
    tool("tell", critical=False),
)
HOLDS = tool("keep", sensitive=True).model_copy(update={"changes": "held"})
AGENT = AgentSpec(name="example", provider="scripted", model="m", tools=TOOLS)


def agent(
    *,
    max_turns: int = 50,
    max_tool_calls_per_turn: int = 100,
    max_active_seconds: float = 14_400.0,
    max_wall_seconds: float | None = None,
    max_cost: Decimal | None = None,
    max_retries: int = 3,
    base_seconds: float = 1.0,
    approval: Literal["sensitive", "off"] = "sensitive",
    in_doubt: Literal["ask", "tell"] = "ask",
    auto_approve: bool = False,
    on_open: Literal["wait", "fallback", "pause"] = "wait",
    fallbacks: int = 0,
    context_window: int | None = None,
) -> AgentSpec:
    """Return the example agent with other limits and policies."""
    return AGENT.model_copy(
        update={
            "limits": Limits(
                max_turns=max_turns,
                max_tool_calls_per_turn=max_tool_calls_per_turn,
                max_active_seconds=max_active_seconds,
                max_wall_seconds=max_wall_seconds,
                max_cost=max_cost,
            ),
            "context_window": context_window,
            "breaker": BreakerPolicy(on_open=on_open),
            "fallback": tuple(
                Fallback(provider="scripted", model=f"fallback-{n + 1}") for n in range(fallbacks)
            ),
            "retry": RetryPolicy(max_retries=max_retries, base_seconds=base_seconds, jitter=0),
            "policy": Policy(
                approval=(approval,),
                in_doubt=in_doubt,
                auto_approve=auto_approve,
                approval_seconds=300,
            ),
        }
    )


def started(
    spec: AgentSpec = AGENT,
    goal: str | None = "Tidy up.",
    *,
    open: bool = False,  # noqa: A002 - the fact's own word
) -> SessionStarted:
    """Return how a session starts."""
    return SessionStarted(
        agent=spec,
        goal=goal,
        open=open,
        attached=False,
        epoch=1,
        at=NOW,
    )


def forked(
    spec: AgentSpec = AGENT,
    goal: str | None = None,
    *,
    parent: str = "session-default/1",
    version: int = 1,
    open: bool = False,  # noqa: A002 - the fact's own word
    note: str | None = None,
) -> SessionForked:
    """Return how a session begins as a fork of *parent*."""
    return SessionForked(
        parent=parent,
        version=version,
        hash="00",
        agent=spec,
        goal=goal,
        open=open,
        attached=False,
        note=note,
        epoch=1,
        at=NOW,
    )


def asking(turn: int = 1, attempt: int = 1) -> ModelStarted:
    """Return the start of a model call."""
    return ModelStarted(effect=f"{turn}.m", attempt=attempt)


def saying(
    *tools: str, turn: int = 1, attempt: int = 1, text: str = "Well.", seconds: float = 0.0
) -> ModelReplied:
    """Return a reply that calls *tools*; none ends the turn."""
    calls = tuple(ToolCall(id=f"call-{turn}-{i}", name=name) for i, name in enumerate(tools))
    return ModelReplied(
        effect=f"{turn}.m",
        attempt=attempt,
        content=(TextBlock(text=text),),
        calls=calls,
        stop_reason="tool_use" if tools else "end_turn",
        seconds=seconds,
    )


def failing(kind: str, *, turn: int = 1, attempt: int = 1, at: datetime = NOW) -> ModelFailed:
    """Return the failure of a model call."""
    return ModelFailed(effect=f"{turn}.m", attempt=attempt, kind=kind, message="no", failed_at=at)


def running(effect: str, name: str = "shout", attempt: int = 1) -> ToolStarted:
    """Return the start of a tool call."""
    return ToolStarted(
        effect=effect, attempt=attempt, tool=name, runner="r1", epoch=1, rule="not sensitive"
    )


def returned(
    effect: str, output: str = "done", attempt: int = 1, seconds: float = 0.0
) -> ToolReturned:
    """Return a tool's answer."""
    return ToolReturned(effect=effect, attempt=attempt, output=output, seconds=seconds)


WHICH = InputRequest(key="which", message="Which one?", parameters={"type": "object"})


def tool_asking(
    effect: str, attempt: int = 1, state: str = "", paths: tuple[str, ...] = ()
) -> ToolAsked:
    """Return the outcome of a tool that asks a person before it does anything."""
    return ToolAsked(
        effect=effect,
        attempt=attempt,
        requests=(WHICH,),
        digest=digest_of((WHICH,)),
        state=state,
        paths=paths,
    )


def deferred(effect: str, attempt: int = 1, *, poll: float = 2, ends: float = 3600) -> ToolDeferred:
    """Return the outcome of a call that goes on as a task; with times in seconds after `NOW`."""
    times = {"at": NOW, "poll_at": later(poll), "deadline_at": later(ends)}
    return ToolDeferred(effect=effect, attempt=attempt, state="sealed", **times)


def working(effect: str, again: float, tool: str = "shout") -> SessionWaiting:
    """Return the outcome of a poll of a task that goes on; *again* is in seconds after `NOW`."""
    cause = task_cause(tool)
    return SessionWaiting(kind="task", cause=cause, deadline_at=later(again), effects=(effect,))


def broken(effect: str, kind: str, attempt: int = 1, at: datetime | None = NOW) -> ToolFailed:
    """Return the failure of a tool call."""
    return ToolFailed(effect=effect, attempt=attempt, kind=kind, message="gone", failed_at=at)


def received(
    version: int, message: InboxMessage, gate_answer: GateAnswer | None = None
) -> MessageReceived:
    """Return a message as the session reads it."""
    return MessageReceived(
        inbox_version=version, recorded_at=NOW, message=message, gate_answer=gate_answer
    )


def said(
    version: int, text: str = "Hm.", lane: Literal["note", "steer", "followup"] = "note"
) -> MessageReceived:
    """Return something that a user said."""
    return received(version, MessageSent(lane=lane, text=text))


def decided(
    version: int,
    approval: str,
    verdict: Literal["granted", "denied"],
    note: str = "",
    *,
    resolution: Resolution | None = None,
    result: str = "",
) -> MessageReceived:
    """Return a person's decision, as the gate took it."""
    given = DecisionGiven(
        approval=approval,
        digest="d",
        verdict="grant" if verdict == "granted" else "deny",
        by="ada",
        note=note,
        resolution=resolution,
        result=result,
    )
    answer = GateAnswer(
        approval=approval,
        verdict=verdict,
        by="ada",
        note=note,
        resolution=resolution,
        result=result,
    )
    return received(version, given, answer)


def question(
    effect: str,
    approval: str,
    asked: Literal["may_it_run", "did_it_happen", "what_to_answer"] = "may_it_run",
    *,
    name: str = "delete",
    stream: str = "session-default/1",
) -> ApprovalRequested:
    """Return a question to a person about a call of the tool *name*."""
    digest = order_digest(
        session=stream, effect=effect, tool=name, tool_digest=name, arguments={}, workspace=None
    )
    return ApprovalRequested(
        effect=effect,
        approval=approval,
        digest=digest,
        deadline_at=later(300),
        question=asked,
    )


def up_to_reply(*tools: str, spec: AgentSpec = AGENT) -> list[SessionEvent]:
    """Return the commands that bring a session to a reply that calls *tools*."""
    return [started(spec), asking(), saying(*tools)]
