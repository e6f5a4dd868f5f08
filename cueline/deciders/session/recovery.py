"""What becomes of a call that failed, or whose outcome is not known (I5)."""

from datetime import datetime

from cueline.deciders.retry import retry_at
from cueline.deciders.session.state import Call, SessionState
from cueline.events.agent import RetryPolicy
from cueline.events.failure import TRANSIENT
from cueline.events.session import ToolFailed, ToolInDoubt, ToolReconciled

UNKNOWN_OUTCOME = (
    "The outcome of this call is unknown: its runner died while it ran. "
    "It may or may not have taken effect; find out before you repeat it."
)


def lost(
    state: SessionState, call: Call, *, evidence: str, at: datetime | None
) -> ToolFailed | ToolInDoubt:
    """Say what a started call is whose runner can be asked no more."""
    if not call.repeatable:
        return ToolInDoubt(effect=call.effect, attempt=call.attempt, evidence=evidence)
    return ToolFailed(
        effect=call.effect,
        attempt=call.attempt,
        kind="lost",
        message=evidence,
        failed_at=at,
        retry_at=again_at(state, call, at),
    )


def again_at(state: SessionState, call: Call, failed_at: datetime | None) -> datetime | None:
    """Return when a lost attempt is made again: at once, then later and later, then never."""
    policy = retries_of(state, call)
    if failed_at is None or call.failures >= policy.max_retries:
        return None
    if call.failures == 0:
        return failed_at
    return retry_at(
        policy,
        key=f"{state.stream}/{call.effect}",
        failures=call.failures,
        failed_at=failed_at,
        since=call.failing_since,
    )


def retried_at(state: SessionState, call: Call, failed: ToolFailed) -> datetime | None:
    """Return when the call is made again after a failure that its tool reported.

    Only what is declared as harmless to repeat is, and only if the failure
    passes by its kind; its message is for the model (C1, C3).
    """
    if failed.kind not in TRANSIENT or failed.failed_at is None:
        return None
    if not call.repeatable or state.stop is not None:
        return None
    return retry_at(
        retries_of(state, call),
        key=f"{state.stream}/{call.effect}",
        failures=call.failures + 1,
        failed_at=failed.failed_at,
        since=call.failing_since,
        retry_after=failed.retry_after,
    )


def retries_of(state: SessionState, call: Call) -> RetryPolicy:
    """Return how a call is tried again: as its tool says, else as its agent does."""
    assert state.setup is not None, "a call belongs to a session that was started"
    tool = state.setup.tools.get(call.tool)
    own = tool.retry if tool is not None else None
    return own or state.agent.tool_retry or state.agent.retry


def told_in_doubt(state: SessionState, call: Call) -> ToolReconciled | None:
    """Say what is known of a call in doubt; None while somebody is asked."""
    if call.ruling is not None:
        by = call.ruling.by
        if not call.ruling.happened:
            return ToolReconciled(effect=call.effect, outcome="did_not_happen", by=by)
        told = f"{by} confirmed that this call took effect; its output is not known."
        return ToolReconciled(effect=call.effect, outcome="happened", by=by, output=told)
    if call.reconciles:
        return None
    if state.agent.policy.in_doubt == "tell":
        by = "policy"
    elif state.steered:
        by = "steer"
    else:
        return None
    return ToolReconciled(effect=call.effect, outcome="unknown", by=by, output=UNKNOWN_OUTCOME)
