"""Sessions that follow a plan, for examples in tests."""

from pydantic import JsonValue

from cueline.events.agent import AgentSpec, Policy
from cueline.events.agent_parts import Plan, Step
from cueline.events.inbox import MessageSent
from cueline.events.session import (
    MessageAwaited,
    MessageReceived,
    SessionEvent,
    SessionStarted,
    ToolReturned,
)
from cueline.testing.given import given
from tests.session_example import NOW, later, received, running, tool

SPARE = ("spare", "extra")
"""Steps whose tools are not critical."""


def planned(*steps: Step, output: str = "", max_parallel: int = 10, **policy: object) -> AgentSpec:
    """Return an agent with a plan; the tools `look…` are read-only, `delete` is sensitive."""
    tools = [
        tool(
            step.name,
            "read_only" if step.name.startswith("look") else "nothing",
            sensitive=step.name == "delete",
            critical=step.name not in SPARE,
        )
        for step in steps
        if not step.wait
    ]
    return AgentSpec(
        name="example",
        provider="workflow",
        model="",
        tools=tuple(tools),
        plan=Plan(steps=steps, output=output, max_parallel=max_parallel),
        policy=Policy.model_validate(policy),
    )


def begun(spec: AgentSpec, **parameters: JsonValue) -> SessionStarted:
    """Return how a session with a plan starts."""
    return SessionStarted(
        agent=spec, goal=None, parameters=parameters, open=False, attached=False, epoch=1, at=NOW
    )


def at_work(*steps: Step, **options: object):
    """Return a session that follows *steps* and has just begun."""
    return given().when(begun(planned(*steps, **options)))


def ran(number: int, name: str, value: JsonValue = None, output: str = "ok") -> list[SessionEvent]:
    """Return that a call ran and returned."""
    effect = f"1.{number}"
    return [
        running(effect, name),
        ToolReturned(effect=effect, attempt=1, output=output, value=value),
    ]


def awaited(number: int, name: str, seconds: float = 60.0) -> MessageAwaited:
    """Return that a step begins to wait."""
    return MessageAwaited(effect=f"1.{number}", name=name, deadline_at=later(seconds))


def told(version: int, name: str, value: JsonValue) -> MessageReceived:
    """Return the message of that name."""
    return received(version, MessageSent(lane="note", text=str(value), name=name, value=value))
