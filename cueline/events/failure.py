"""The error codes of models and tools.

Whether a failure is retried depends on its code, never on its message, which may
change. An unknown code is permanent.
"""

from typing import Final

TRANSIENT: Final = frozenset(
    {"rate_limited", "overloaded", "unavailable", "timeout", "network", "malformed_reply"}
)
"""Transient: the same request may succeed a little later (C3)."""
PERMANENT: Final = frozenset(
    {
        "invalid_request",
        "auth",
        "refused",
        "context_too_long",
        "content_filtered",
        "tool_error",
        "unknown",
    }
)
"""Permanent: the same request would fail again."""
OF_ACCOUNT: Final = frozenset({"auth"})
"""Said of a provider's key, and of no model alone: a wrong key, an empty quota, an unpaid bill."""
SAID: Final = TRANSIENT | PERMANENT
"""Codes that a provider or tool can report; lost attempts are found by the host (I5)."""
NOT_STARTED: Final = "not_started"
"""A tool call that never began."""
NOT_RECORDED: Final = "not_recorded"
"""A tool call of a rerun that the earlier session has no result of; it did not run."""
NO_OLD_MESSAGES: Final = "no_old_messages"
"""A compaction of a conversation that has no old messages to summarise; no model was called."""
NO_ANSWER: Final = "no_answer"
"""A reply of thoughts alone: the model is asked once more."""
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
"""Failures of an attempt between the host and its model or runner."""

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
"""Codes by HTTP status; an unpaid bill counts like a wrong key."""
