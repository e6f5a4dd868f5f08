"""Retries a Python function, with the same waits as cueline's effects."""

from collections.abc import Awaitable, Callable, Sequence
from typing import TypeVar
from uuid import uuid4

from cueline.clock import Clock, SystemClock
from cueline.deciders.retry import retry_at
from cueline.errors import ProviderUnavailableError, ToolFailedError
from cueline.events.agent_parts import RetryPolicy
from cueline.events.codes import TRANSIENT

T = TypeVar("T")
_Kinds = tuple[type[Exception], ...]


async def retry_with_backoff(
    func: Callable[[], Awaitable[T]],
    policy: RetryPolicy | None = None,
    *,
    transient: Sequence[type[Exception]] = (),
    clock: Clock | None = None,
) -> T:
    """Call *func*, repeat the call after transient failures, and return the result.

    A failure is transient by its type: a `ToolFailedError` or `ProviderUnavailableError` of a
    transient kind, or a type in *transient*. Use the function only for repeatable calls. Inside a
    session, declare the retries of the tool instead; the log records these retries.

    Raises:
        Exception: the last failure, if it is permanent or the retries are used up.
    """
    policy, clock = policy or RetryPolicy(), clock or SystemClock()
    passing = tuple(transient)
    worth_a_look: _Kinds = (ToolFailedError, ProviderUnavailableError, *passing)
    key = uuid4().hex  # so that a thousand callers do not return at once
    failures, since = 0, None
    while True:
        try:
            return await func()
        except worth_a_look as error:
            failed_at = clock.now()
            since = since or failed_at
            failures += 1
            again = None
            if isinstance(error, passing) or getattr(error, "kind", "") in TRANSIENT:
                asked = getattr(error, "retry_after", None)  # as other libraries do
                again = retry_at(
                    policy,
                    key=key,
                    failures=failures,
                    failed_at=failed_at,
                    since=since,
                    retry_after=asked if isinstance(asked, int | float) else None,
                )
            if again is None:
                raise
            await clock.sleep((again - failed_at).total_seconds())
