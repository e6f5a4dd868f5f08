"""Whom a session host works with, and how long it waits for them."""

from collections.abc import Awaitable, Callable, Collection, Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Protocol

from pydantic import JsonValue

from cueline.actors.approval_gate import GatePort
from cueline.actors.cost_ledger import LedgerPort
from cueline.actors.model_port import ModelFactory
from cueline.actors.runner import RunnerPort
from cueline.actors.slot import Slots
from cueline.clock import Clock
from cueline.events.agent import AgentSpec, Hook, ToolSpec, Workspace
from cueline.events.journal import Journal
from cueline.events.message import Cost, Estimate, Usage
from cueline.events.sanitize import Redactor

RUNNER_SECONDS = 600.0
"""After so long a silence a runner is gone (its calls ended themselves before)."""
DEAF_SECONDS = RUNNER_SECONDS / 2
"""After so long without a word from anybody a runner ends, and a host that nobody else would end:
nobody counts it as gone before."""
REACH_SECONDS = 2.0
"""How long a runner is tried before the session rests."""


class RunnerDirectory(Protocol):
    """Which runners there are."""

    def choose(
        self, tool: ToolSpec, workspace: Workspace | None, full: Collection[str] = ()
    ) -> str | None:
        """Return the incarnation of a runner that reaches what the call needs; none of *full*."""
        ...

    def find(self, incarnation: str) -> RunnerPort | None:
        """Return the runner of that incarnation, if it can be reached."""
        ...

    async def answers(self, incarnation: str) -> bool:
        """Ask the runner of that incarnation for a sign of life."""
        ...

    async def gone(self, incarnation: str) -> str | None:
        """Return the evidence that the incarnation is gone; None while it may live."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class HostDependencies:
    """Whom a session host works with."""

    clock: Clock
    journal: Callable[[AgentSpec | None], Journal]
    """The log, cleaned of the secrets of that agent."""
    redactor: Callable[[AgentSpec], Redactor]
    check_secrets: Callable[[AgentSpec, Collection[str]], None]
    """Raises `ConfigError` for a secret of an agent that is not known here, and was not waived."""
    models: ModelFactory
    runners: RunnerDirectory
    gate: GatePort
    check_call: Callable[[ToolSpec, Mapping[str, JsonValue]], str | None]
    """What the model is told of arguments that do not fit; None when they do."""
    estimate: Callable[[ToolSpec, Mapping[str, JsonValue]], Awaitable[Estimate]]
    """What a call will cost, of a tool that estimates each."""
    preview: Callable[[ToolSpec, Mapping[str, JsonValue], Workspace | None], str]
    """What a call would change, as a unified diff, where that can be seen;
    a warning if it can change the log."""
    tell: Callable[[AgentSpec, Hook, bytes], Awaitable[str | None]]
    """Runs a hook with what there is to tell; returns why nobody was reached, if so."""
    price: Callable[[AgentSpec, str, Usage], Cost | None]
    ledger: LedgerPort
    bound: Callable[[AgentSpec, int, int | None], tuple[int, Decimal | None]]
    """What a call with a prompt of so many bytes takes at most, in tokens and US dollars.

    Beside the bytes it is told what the vendor counted, where it did.
    """
    grace_seconds: float
    """What is in flight may finish for so long, before a stop or a signal ends it."""
    slots: Slots
    """Of each runner, those that this host may use."""
    account: Callable[[AgentSpec], str]
    """Names whose key an agent uses, without telling it: who shares it shares its breakers."""
