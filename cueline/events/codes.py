"""Codes: why a session waits, why a message is refused, and how an effect failed.

`cueline.events.event_text` makes the sentence for people.

Whether a failure is retried depends on its code, never on its message, which may
change. An unknown code is permanent.
"""

from decimal import Decimal
from operator import not_
from typing import Final, Literal

from pydantic import Field

from cueline.events.agent_parts import NO_DEMANDS, Demands
from cueline.events.fact import Part

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
    "no_slot",
    "sandbox_failed",
    "scheduled",
    "queued",
    "breaker_open",
    "breaker_held",
    "breaker_probing",
    "retry_pending",
    "child_running",
    "task_working",
    "message_awaited",
]


class Cause(Part):
    """Why a session waits or is paused: a code with its parameters."""

    code: CauseCode
    failure: str = Field(default="", exclude_if=not_)
    """The error code of the failure."""
    message: str = Field(default="", exclude_if=not_)
    """The text of a vendor, tool or exception."""
    every_seconds: float = Field(default=0, exclude_if=not_)
    """The time between the starts of a series of sessions."""
    times: int = Field(default=0, exclude_if=not_)
    """The number of hosts that died, of running children, or of sessions before this one."""
    approvals: tuple[str, ...] = Field(default=(), exclude_if=not_)
    runner: str = Field(default="", exclude_if=not_)
    blueprint: str = Field(default="", exclude_if=not_)
    demands: Demands = Field(default=NO_DEMANDS, exclude_if=not_)
    """The demands of the call on its runner."""
    unmet: Demands = Field(default=NO_DEMANDS, exclude_if=not_)
    """The demands that the closest runner does not meet."""
    dependency: str = Field(default="", exclude_if=not_)
    """The model or tool whose breaker blocks calls."""
    limit: str = Field(default="", exclude_if=not_)
    """The name of the limit in `Limits`."""
    of: Decimal = Field(default=Decimal(0), exclude_if=not_)
    """The value of the limit."""
    name: str = Field(default="", exclude_if=not_)
    """The name of the message, or of the tool."""
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


RefusalCode = Literal[
    "session_ended",
    "session_stopping",
    "never_started",
    "started_before",
    "no_such_approval",
    "already_decided",
    "other_digest",
    "too_late",
    "not_in_doubt",
    "not_resolved",
    "not_answered",
    "no_result",
    "no_person",
    "excluded",
    "not_allowed",
    "granted_before",
    "nothing_to_change",
    "needs_others",
    "no_limit_named",
    "no_such_limit",
    "not_higher",
    "plan_takes_no_messages",
    "no_such_wait",
    "procedural_agent_no_resume",
]


class Refusal(Part):
    """Why a message changes nothing: a code with its parameters."""

    code: RefusalCode
    status: str = Field(default="", exclude_if=not_)
    """The status of the session or approval."""
    by: str = Field(default="", exclude_if=not_)
    """The person who decided."""
    votes: int = Field(default=0, exclude_if=not_)
    """The number of people who have to grant the call."""
    may_grant: tuple[str, ...] = Field(default=(), exclude_if=not_)
    """The people who may grant the call."""
    limit: str = Field(default="", exclude_if=not_)
    """The name of the limit in `Limits`."""
    of: Decimal = Field(default=Decimal(0), exclude_if=not_)
    """The value of the limit."""
    unread: bool = Field(default=False, exclude_if=not_)
    """The value that the limit will have once the session has read its inbox."""


TRANSIENT: Final = frozenset(
    {"rate_limited", "overloaded", "unavailable", "timeout", "network", "malformed_reply"}
)
"""The codes of transient failures: the same request may succeed a little later (C3)."""
PERMANENT: Final = frozenset(
    {
        "invalid_request",
        "auth",
        "refused",
        "context_too_long",
        "content_filtered",
        "tool_error",
        "retry",
        "unknown",
    }
)
"""The codes of permanent failures: the same request would fail again."""
OF_ACCOUNT: Final = frozenset({"auth"})
"""Codes about a provider's key, not one model: a wrong key, an empty quota, an unpaid bill."""
SAID: Final = TRANSIENT | PERMANENT
"""The codes that a provider or tool can report; the host itself finds lost attempts (I5)."""
NOT_STARTED: Final = "not_started"
"""The code of a tool call that never began."""
NOT_RECORDED: Final = "not_recorded"
"""The code of a rerun's tool call that has no result in the earlier session; it did not run."""
NO_OLD_MESSAGES: Final = "no_old_messages"
"""The code of a compaction without old messages to summarise; no model was called."""
NO_ANSWER: Final = "no_answer"
"""The code of a reply with thoughts only; the model is called once more."""
OURS: Final = frozenset(
    {
        NO_ANSWER,
        NO_OLD_MESSAGES,
        NOT_RECORDED,
        "config",
        "invalid_arguments",
        "unknown_tool",
        "not_granted",
        "lost",
        NOT_STARTED,
        "tool_changed",
        "cancelled",
        "killed",
    }
)
"""The codes of failures between the host and its model or runner."""

BY_STATUS: Final = {
    401: "auth",
    402: "auth",
    403: "auth",
    404: "invalid_request",
    408: "timeout",
    413: "context_too_long",
    422: "invalid_request",
    429: "rate_limited",
    500: "unavailable",
    502: "unavailable",
    503: "unavailable",
    504: "timeout",
    529: "overloaded",
}
"""The error codes by HTTP status; an unpaid bill counts like a wrong key."""
