"""The kinds of failure, of models and tools alike.

What is done about a failure depends on its kind and never on its message,
which may change. A kind that nobody knows is permanent.
"""

from typing import Final

TRANSIENT: Final = frozenset(
    {"rate_limited", "overloaded", "unavailable", "timeout", "network", "malformed_reply"}
)
"""They pass: the same request may well succeed a little later (C3)."""
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
"""The same request would fail again."""
SAID: Final = TRANSIENT | PERMANENT
"""What a provider or a tool can say; what became of an attempt is ours to find out (I5)."""
NOT_STARTED: Final = "not_started"
"""A tool call that never began."""
OURS: Final = frozenset(
    {
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
"""What happens to an attempt between us and whoever was to carry it out."""

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
"""What an HTTP status says; an unpaid bill is mended by the account's owner, as a wrong key is."""
