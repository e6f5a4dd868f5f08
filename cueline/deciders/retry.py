"""When a failed effect is retried."""

import hashlib
from datetime import datetime, timedelta

from cueline.events.failure import NO_ANSWER, NOT_STARTED
from cueline.events.failure_policy import RetryPolicy

FATAL_MODEL = frozenset({"invalid_request", "refused", "content_filtered", NO_ANSWER})
"""Failures that any retry of the same request would repeat."""
SUITS_ANOTHER = frozenset({"invalid_request", NO_ANSWER})
"""Some of these may succeed with another model, which knows the parameter, or answers."""
LOST = frozenset({"lost", NOT_STARTED})
"""A tool call that was lost with its runner, or never began."""
HELD = frozenset({NOT_STARTED, "tool_changed"})
"""A tool call that never began and, without a retry, waits for a person."""
LONGEST_WAIT_SECONDS = 86_400.0
"""The longest wait for a machine, whatever a provider asks for (I14)."""
REST_SECONDS = 2.0
"""During a shorter wait the session stays `running`."""

_SPREAD = 2**64 - 1


def delay_seconds(policy: RetryPolicy, key: str, retry: int) -> float:
    """Return the wait before retry number *retry* (from 1), in seconds.

    min(cap, base * factor**(retry-1)), spread by +/- jitter. The spread is a
    hash of key and retry, so a repeated decision gives the same time (I10).
    """
    plain = policy.base_seconds
    for _ in range(retry - 1):  # a larger power would overflow
        plain = min(policy.cap_seconds, plain * policy.factor)
    digest = hashlib.sha256(f"{key}#{retry}".encode()).digest()
    share = int.from_bytes(digest[:8], "big") / _SPREAD
    return min(policy.cap_seconds, plain) * (1 + policy.jitter * (2 * share - 1))


def retry_at(
    policy: RetryPolicy,
    *,
    key: str,
    failures: int,
    failed_at: datetime,
    since: datetime | None = None,
    retry_after: float | None = None,
) -> datetime | None:
    """Return the time of the next retry after *failures* failures, the first at *since*.

    Returns None after the last. The retry is not before *retry_after*, which counts up to
    one day; if that is after the deadline, there is no retry.
    """
    if failures > policy.max_retries:
        return None
    wait = max(delay_seconds(policy, key, failures), retry_after or 0.0)
    again = failed_at + timedelta(seconds=min(wait, LONGEST_WAIT_SECONDS))
    if policy.deadline_seconds is None:
        return again
    spent = again - (since or failed_at)
    return None if spent.total_seconds() > policy.deadline_seconds else again


def rests(failed_at: datetime | None, retry_at: datetime | None) -> bool:
    """Whether the retry is so late that the session waits for it."""
    if failed_at is None or retry_at is None:
        return False
    return (retry_at - failed_at).total_seconds() >= REST_SECONDS
