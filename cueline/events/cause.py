"""Why a session waits, or is held: a code and its parameters, without a sentence.

People read the sentences of `cueline.event_text`.
"""

from decimal import Decimal
from operator import not_
from typing import Literal

from pydantic import Field

from cueline.events.agent import Part

CauseCode = Literal[
    "asked",
    "signal",
    "limit_reached",
    "hosts_died",
    "unexpected_error",
    "model_failed",
    "tool_failed",
    "call_denied",
    "approval_pending",
    "approval_expired",
    "budget_busy",
    "budget_exhausted",
    "runner_unreachable",
    "no_runner",
    "breaker_open",
    "breaker_held",
    "breaker_probing",
    "retry_pending",
]


class Cause(Part):
    """Why a session waits, or is held; each code has the parameters that it needs."""

    code: CauseCode
    failure: str = Field(default="", exclude_if=not_)
    """The kind of the failure that led to it."""
    message: str = Field(default="", exclude_if=not_)
    """The words of a vendor, a tool or an exception."""
    times: int = Field(default=0, exclude_if=not_)
    """How often it happened."""
    approvals: tuple[str, ...] = Field(default=(), exclude_if=not_)
    runner: str = Field(default="", exclude_if=not_)
    dependency: str = Field(default="", exclude_if=not_)
    """The model or tool whose breaker keeps calls back."""
    limit: str = Field(default="", exclude_if=not_)
    """The name of the limit in `Limits`."""
    of: Decimal = Field(default=Decimal(0), exclude_if=not_)
    """The value of the limit."""
    whose: str = Field(default="", exclude_if=not_)
    """The session above that has the limit; empty: it is its own."""
    spent: Decimal = Field(default=Decimal(0), exclude_if=not_)
    held: Decimal = Field(default=Decimal(0), exclude_if=not_)
    """What is reserved for the calls of others."""
    need: Decimal = Field(default=Decimal(0), exclude_if=not_)
    """What the next call may take."""
