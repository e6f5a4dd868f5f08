"""A runtime for LLM agents: event-sourced actors on Ray.

The names below are public; everything else may change. They are imported on first use,
so `cueline --help` is fast.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from cueline.actors.live_text import TextDelta
    from cueline.agents.agent import Agent
    from cueline.agents.agent_tool import ToolSettings
    from cueline.agents.backoff import retry_with_backoff
    from cueline.agents.workflow import Procedure, Step, Workflow
    from cueline.client.runtime import Runtime, connect, open_runtime
    from cueline.client.session import Result, Session
    from cueline.clock import SystemClock
    from cueline.errors import CuelineError, ToolFailedError
    from cueline.events.agent import Fallback, Hook, Limits, ModelChoice, Policy, Price, Rule
    from cueline.events.agent_parts import (
        BreakerPolicy,
        Demands,
        Isolation,
        IsolationLimits,
        McpOAuth,
        McpServer,
        RetryPolicy,
    )
    from cueline.events.sandbox import SandboxSpec
    from cueline.events.session import ApprovalRequested, SessionEvent
    from cueline.tools.custom import CustomTool
    from cueline.tools.http_access import HttpAccess
    from cueline.tools.tool import Image, Tool, ToolContext, tool

__all__ = [
    "Agent",
    "ApprovalRequested",
    "BreakerPolicy",
    "CuelineError",
    "CustomTool",
    "Demands",
    "Fallback",
    "Hook",
    "HttpAccess",
    "Image",
    "Isolation",
    "IsolationLimits",
    "Limits",
    "McpOAuth",
    "McpServer",
    "ModelChoice",
    "Policy",
    "Price",
    "Procedure",
    "Result",
    "RetryPolicy",
    "Rule",
    "Runtime",
    "SandboxSpec",
    "Session",
    "SessionEvent",
    "Step",
    "SystemClock",
    "TextDelta",
    "Tool",
    "ToolContext",
    "ToolFailedError",
    "ToolSettings",
    "Workflow",
    "connect",
    "open_runtime",
    "retry_with_backoff",
    "tool",
]

_HOMES = {
    "Agent": "cueline.agents.agent",
    "ApprovalRequested": "cueline.events.session",
    "BreakerPolicy": "cueline.events.agent_parts",
    "CuelineError": "cueline.errors",
    "CustomTool": "cueline.tools.custom",
    "Demands": "cueline.events.agent_parts",
    "Fallback": "cueline.events.agent",
    "Hook": "cueline.events.agent",
    "HttpAccess": "cueline.tools.http_access",
    "Image": "cueline.tools.tool",
    "Isolation": "cueline.events.agent_parts",
    "IsolationLimits": "cueline.events.agent_parts",
    "Limits": "cueline.events.agent",
    "McpOAuth": "cueline.events.agent_parts",
    "McpServer": "cueline.events.agent_parts",
    "ModelChoice": "cueline.events.agent",
    "Policy": "cueline.events.agent",
    "Price": "cueline.events.agent",
    "Procedure": "cueline.agents.workflow",
    "Result": "cueline.client.session",
    "RetryPolicy": "cueline.events.agent_parts",
    "Rule": "cueline.events.agent",
    "Runtime": "cueline.client.runtime",
    "SandboxSpec": "cueline.events.sandbox",
    "Session": "cueline.client.session",
    "SessionEvent": "cueline.events.session",
    "Step": "cueline.agents.workflow",
    "SystemClock": "cueline.clock",
    "TextDelta": "cueline.actors.live_text",
    "Tool": "cueline.tools.tool",
    "ToolContext": "cueline.tools.tool",
    "ToolFailedError": "cueline.errors",
    "ToolSettings": "cueline.agents.agent_tool",
    "Workflow": "cueline.agents.workflow",
    "connect": "cueline.client.runtime",
    "open_runtime": "cueline.client.runtime",
    "retry_with_backoff": "cueline.agents.backoff",
    "tool": "cueline.tools.tool",
}


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module 'cueline' has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOMES})
