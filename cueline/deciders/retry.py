"""When an effect is tried again."""

import hashlib
from datetime import datetime, timedelta

from cueline.events.agent import RetryPolicy

TRANSIENT_MODEL = frozenset(
    {"rate_limited", "overloaded", "unavailable", "timeout", "network", "malformed_reply"}
)
"""Failures of a model call that pass; any other is permanent (C3)."""
FATAL_MODEL = frozenset({"invalid_request", "context_too_long", "refused", "content_filtered"})
"""Failures that the same recorded session would meet for ever."""
LOST = frozenset({"lost", "not_started"})
"""A tool call that went down with its runner, or never began."""

_SPREAD = 2**64 - 1


def delay_seconds(policy: RetryPolicy, key: str, retry: int) -> float:
    """Return how long to wait before retry number *retry* (from 1), in seconds.

    min(cap, base * factor**(retry-1)), spread by +/- jitter. The spread is a
    hash of key and retry, so that deciding again gives the same time (I10).
    """
    plain = min(policy.cap_seconds, policy.base_seconds * policy.factor ** (retry - 1))
    digest = hashlib.sha256(f"{key}#{retry}".encode()).digest()
    share = int.from_bytes(digest[:8], "big") / _SPREAD
    return plain * (1 + policy.jitter * (2 * share - 1))


def retry_at(
    policy: RetryPolicy,
    *,
    key: str,
    failures: int,
    failed_at: datetime,
    retry_after: float | None,
) -> datetime | None:
    """Return when to try again after *failures* failures; None when it is enough."""
    if failures > policy.max_retries:
        return None
    wait = max(delay_seconds(policy, key, failures), retry_after or 0.0)
    return failed_at + timedelta(seconds=wait)
