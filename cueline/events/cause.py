"""Why a session waits or is paused: a code and its parameters.

`cueline.events.event_text` makes the sentence for people.
"""

from decimal import Decimal
from operator import not_
from typing import Literal

from pydantic import Field

from cueline.events.demands import NO_DEMANDS, Demands
from cueline.events.part import Part

CauseCode = Literal[
    "asked",
    "signal",
    "limit_reached",
    "hosts_died",
    "unexpected_error",
    "rule_failed",
    "model_failed",
    "tool_failed",
    "call_denied",
    "approval_pending",
    "approval_expired",
    "budget_busy",
    "budget_exhausted",
    "runner_unreachable",
    "no_runner",
    "scheduled",
    "queued",
    "breaker_open",
    "breaker_held",
    "breaker_probing",
    "retry_pending",
    "child_running",
    "message_awaited",
]


class Cause(Part):
    """Why a session waits or is paused; each code has the parameters that it needs."""

    code: CauseCode
    failure: str = Field(default="", exclude_if=not_)
    """The error code of the failure."""
    message: str = Field(default="", exclude_if=not_)
    """The text of a vendor, tool or exception."""
    every_seconds: float = Field(default=0, exclude_if=not_)
    """Time between the starts of a series of sessions."""
    times: int = Field(default=0, exclude_if=not_)
    """The number of times."""
    approvals: tuple[str, ...] = Field(default=(), exclude_if=not_)
    runner: str = Field(default="", exclude_if=not_)
    blueprint: str = Field(default="", exclude_if=not_)
    demands: Demands = Field(default=NO_DEMANDS, exclude_if=not_)
    """What the call needs of its runner."""
    unmet: Demands = Field(default=NO_DEMANDS, exclude_if=not_)
    """Those that no runner meets; of the runner that meets most of them."""
    dependency: str = Field(default="", exclude_if=not_)
    """The model or tool whose breaker blocks calls."""
    limit: str = Field(default="", exclude_if=not_)
    """The name of the limit in `Limits`."""
    of: Decimal = Field(default=Decimal(0), exclude_if=not_)
    """The value of the limit."""
    name: str = Field(default="", exclude_if=not_)
    """The name of the message."""
    whose: str = Field(default="", exclude_if=not_)
    """The ancestor with the limit; empty: the session itself."""
    spent: Decimal = Field(default=Decimal(0), exclude_if=not_)
    held: Decimal = Field(default=Decimal(0), exclude_if=not_)
    """The amount reserved for other calls."""
    need: Decimal = Field(default=Decimal(0), exclude_if=not_)
    """The amount that the next call may take."""

    @property
    def is_unmet(self) -> bool:
        """Whether no runner meets the demands of a call."""
        return self.code == "no_runner"
