"""The objects and time limits that a session host gets from its process."""

from collections.abc import Awaitable, Callable, Collection, Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Protocol

from pydantic import JsonValue

from cueline.actors.approval_gate import GatePort
from cueline.actors.cost_ledger import LedgerPort
from cueline.actors.fleet_log import FleetLog
from cueline.actors.live_text import LiveTextHub
from cueline.actors.model_port import ModelFactory
from cueline.actors.runner import RunnerPort
from cueline.actors.runner_slots import Slots
from cueline.actors.sandbox_pool import SandboxPort
from cueline.actors.session_tree import OutputReader
from cueline.clock import Clock
from cueline.events.agent import AgentSpec, Hook, ToolSpec
from cueline.events.agent_parts import Demands
from cueline.events.journal import Journal
from cueline.events.message import Cost, Estimate, Usage

REACH_SECONDS = 2.0
"""Time to try an unreachable runner before the session waits."""


class RunnerDirectory(Protocol):
    """Finds runners."""

    def choose(self, demands: Demands, full: Collection[str] = ()) -> str | None:
        """Return the incarnation of a runner that meets *demands* and is not in *full*."""

    def unmet(self, demands: Demands) -> Demands:
        """Return the demands that the closest runner does not meet; empty: one runner meets all.

        See `cueline.deciders.matching.least_unmet`.
        """

    def find(self, incarnation: str) -> RunnerPort | None:
        """Return the runner of that incarnation; None if it cannot be reached."""

    async def answers(self, incarnation: str) -> bool:
        """Whether the runner of that incarnation answers a ping."""

    async def gone(self, incarnation: str) -> str | None:
        """Return the evidence that the incarnation is dead; None while it may live."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HostDependencies:
    """The dependencies of a session host."""

    clock: Clock
    journal: Callable[[AgentSpec | None], Journal]
    """Returns the journal of an agent, which removes the agent's secrets."""
    check_secrets: Callable[[AgentSpec, Collection[str]], None]
    """Raises `ConfigError` if a secret of the agent is unknown here and was not waived."""
    models: ModelFactory
    runners: RunnerDirectory
    fleet: FleetLog
    """The registered runners, and their blueprints."""
    gate: GatePort
    check_call: Callable[[ToolSpec, Mapping[str, JsonValue]], str | None]
    """Checks arguments: returns the error for the model; None if they are valid."""
    read_output: OutputReader
    """Reads the last reply of an agent as its declared output."""
    estimate: Callable[[ToolSpec, Mapping[str, JsonValue]], Awaitable[Estimate]]
    """Estimates the cost of a call, for tools with an estimate."""
    preview: Callable[[ToolSpec, Mapping[str, JsonValue], AgentSpec], str]
    """Previews the change of a call as a unified diff, or warns that it can change the log."""
    tell: Callable[[AgentSpec, Hook, bytes], Awaitable[str | None]]
    """Runs a hook with its input; returns the error; None if the hook succeeded."""
    price: Callable[[AgentSpec, str, Usage], Cost | None]
    ledger: LedgerPort
    bound: Callable[[AgentSpec, int, int | None], tuple[int, Decimal | None]]
    """Returns the highest cost of a call in tokens and US dollars.

    Arguments: the prompt's size in bytes, and the vendor's token count or None.
    """
    grace_seconds: float
    """Time that running effects have to finish before a stop or a signal ends them."""
    removal_seconds: float
    """The silence after which an unreachable runner counts as dead."""
    slots: Slots
    """The slots of each runner that this host may use."""
    account: Callable[[AgentSpec], str]
    """Names an agent's provider account without revealing its key."""
    sandboxes: SandboxPort | None = None
    """Starts the sandboxes of sessions; None: there are none here."""
    seal: Callable[[str], str] = str
    """Encrypts what a tool wants back with an answer, because it may hold secrets."""
    unseal: Callable[[str], str] = str
    """Returns what `seal` encrypted; empty if that cannot be read here."""
    live_text: LiveTextHub = field(default_factory=LiveTextHub)
    """The live text of this host's replies."""
