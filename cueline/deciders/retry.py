"""Decides when a failed effect is retried, and which replies count as failed."""

import hashlib
import json
from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Final

from cueline.events.agent_parts import RetryPolicy
from cueline.events.codes import NO_ANSWER, NOT_STARTED
from cueline.events.message import Block, TextBlock, ToolCall

FATAL_MODEL = frozenset({"invalid_request", "refused", "content_filtered", NO_ANSWER})
"""The codes of model failures that a retry of the same request would repeat."""
SUITS_ANOTHER = frozenset({"invalid_request", NO_ANSWER})
"""The codes in `FATAL_MODEL` after which another model may succeed."""
LOST = frozenset({"lost", NOT_STARTED})
"""The codes of a tool call that was lost with its runner, or never began."""
HELD = frozenset({NOT_STARTED, "tool_changed"})
"""The codes of a tool call that never began and, without a retry, waits for a person."""
LONGEST_WAIT_SECONDS = 86_400.0
"""The longest wait in seconds that a provider or tool can request (I14)."""
REST_SECONDS = 2.0
"""The wait in seconds up to which a session stays `running`."""

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

    Returns None after the last retry. The retry is not before *retry_after*, of which at most one
    day counts; if this time is after the policy's deadline, return None.
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
    """Whether the retry is so late that the session waits instead of staying `running`."""
    if failed_at is None or retry_at is None:
        return False
    return (retry_at - failed_at).total_seconds() >= REST_SECONDS


_MINUTE: Final = 60.0
_WEEK: Final = 7 * 86_400.0
_YEAR: Final = 365 * 86_400.0


def poll_at(since: datetime, now: datetime, least: float) -> datetime:
    """Return the time of the next poll of a task that began at *since*.

    The wait is *least* seconds or more. It grows with the task's age to a minute, and after an
    hour is a sixtieth of the age, up to ten minutes: a task of six hours takes 200 polls.
    """
    age = (now - since).total_seconds()
    wait = max(least, REST_SECONDS, min(age / 4, _MINUTE), min(age / 60, 10 * _MINUTE))
    return now + timedelta(seconds=min(wait, LONGEST_WAIT_SECONDS))


def task_deadline(since: datetime, ttl: float | None) -> datetime:
    """Return the deadline of a task that its server keeps for *ttl* seconds; None: not said."""
    return since + timedelta(seconds=min(_WEEK if ttl is None else ttl, _YEAR))


_ENDS = frozenset({"end_turn", "max_tokens"})
"""The stop reasons of a reply that the model ended, or that reached the token limit."""


def silence(
    content: Sequence[Block],
    calls: Sequence[ToolCall],
    stop_reason: str,
    messages: Sequence[bytes],
) -> str | None:
    """Return the error code of a reply to *messages* without text and calls; None otherwise.

    After a tool's result, a model may end its turn without any content.
    """
    if calls or stop_reason not in _ENDS:
        return None
    if any(isinstance(block, TextBlock) and block.text.strip() for block in content):
        return None
    if any(not isinstance(block, TextBlock) for block in content):
        return NO_ANSWER
    roles = (json.loads(message)["role"] for message in reversed(messages))
    after_result = next((role for role in roles if role != "user"), "") == "tool"
    return None if after_result or stop_reason != "end_turn" else "malformed_reply"
