"""Decides about failed calls, and calls of unknown outcome (I5).

The texts are recorded, so they do not change later.
"""

from datetime import datetime
from typing import Any

from cueline.deciders.retry import retry_at
from cueline.deciders.session.state import SessionState
from cueline.deciders.session.turn import Call, InDoubtResolution
from cueline.events.agent import ToolSpec, tool_retries
from cueline.events.codes import TRANSIENT, Cause
from cueline.events.fact import json_or_text
from cueline.events.session import ToolFailed, ToolInDoubt, ToolReconciled


def circuit_open(cause: Cause) -> str:
    """Return the result of a call that a breaker blocked."""
    match cause.code:
        case "breaker_held":
            does = f"asks to be left alone ({cause.failure})"
        case "breaker_probing":
            does = "is tried by one call"
        case _:
            does = f"keeps failing ({cause.failure})"
    return f"circuit_open: {cause.dependency} {does}"


def runner_gone(cause: Cause) -> str:
    """Return the result of a call whose runner did not come back."""
    if cause.code == "no_runner":
        return f"no runner offers {cause.unmet}" if cause.unmet else "there is no runner"
    return (
        f"runner {cause.runner} cannot be reached" if cause.runner else "no runner can be reached"
    )


UNKNOWN_OUTCOME = (
    "The outcome of this call is unknown: its runner died while it ran. "
    "It may or may not have taken effect; find out before you repeat it."
)
_NOT_ITS = frozenset({"invalid_arguments", "cancelled"})
"""The codes of failures that the tool did not cause."""


def fail_lost_call(
    state: SessionState, call: Call, *, cause: Cause, at: datetime | None
) -> ToolFailed | ToolInDoubt:
    """Return the failure of a started call whose runner is gone, or the doubt about the call."""
    if not call.repeatable:
        return ToolInDoubt(effect=call.effect, attempt=call.attempt, cause=cause)
    again = lost_retry_at(state, call, at)
    return ToolFailed(
        effect=call.effect,
        attempt=call.attempt,
        kind="lost",
        message=runner_gone(cause),
        failed_at=at,
        retry_at=again,
        degraded=again is None and degrades(state, call, "lost"),
    )


def lost_retry_at(state: SessionState, call: Call, failed_at: datetime | None) -> datetime | None:
    """Return the time of a lost attempt's retry, first at once, later with growing waits."""
    policy = tool_retries(state.agent, call.tool)
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
    """Return the time of the call's retry after a failure that the tool reported; None: never.

    Only a repeatable call with a transient error code is retried. The failure's message is only
    for the model (C1, C3).
    """
    if failed.kind not in TRANSIENT or failed.failed_at is None:
        return None
    if not call.repeatable or state.stop is not None:
        return None
    return retry_at(
        tool_retries(state.agent, call.tool),
        key=f"{state.stream}/{call.effect}",
        failures=call.failures + 1,
        failed_at=failed.failed_at,
        since=call.failing_since,
        retry_after=failed.retry_after,
    )


def degrades(state: SessionState, call: Call, kind: str = "") -> bool:
    """Whether the work continues without the call, because its tool is not critical (C5)."""
    assert state.setup is not None, "a call belongs to a session that was started"
    tool = state.setup.tools.get(call.tool)
    return tool is not None and not tool.critical and state.stop is None and kind not in _NOT_ITS


def resolve_in_doubt(state: SessionState, call: Call) -> ToolReconciled | None:
    """Return the resolution of a call in doubt; None while a tool or person has to answer."""
    if call.in_doubt_resolution is not None:
        return _apply_resolution(state, call, call.in_doubt_resolution)
    if call.reconciles:
        return None
    degraded = degrades(state, call)
    if state.agent.policy.in_doubt == "tell" or degraded:
        by = "policy"
    elif state.steered:
        by = "steer"
    else:
        return None
    return ToolReconciled(
        effect=call.effect, outcome="unknown", by=by, output=UNKNOWN_OUTCOME, degraded=degraded
    )


def result_given(text: str, tool: ToolSpec) -> dict[str, Any]:
    """Return the value of a step whose result is *text*: JSON, or the text.

    An empty text is null: the result is unknown.
    """
    value = text if tool.returns_text and text else json_or_text(text) if text else None
    return {"value": value, "is_null": value is None}


def _apply_resolution(
    state: SessionState, call: Call, in_doubt_resolution: InDoubtResolution
) -> ToolReconciled:
    """Return the resolution of a call in doubt by a person, or by default."""
    by, effect = in_doubt_resolution.by, call.effect
    note = f"\n{by}: {in_doubt_resolution.note}" if in_doubt_resolution.note else ""
    match in_doubt_resolution.resolution:
        case "happened":
            unknown = f"{by} confirmed that this call took effect; its output is not known."
            told = f"{in_doubt_resolution.result or unknown}{note}"
            given: dict[str, Any] = {}
            if state.progress is not None:
                assert state.setup is not None, "a session with a plan was started"
                given = result_given(in_doubt_resolution.result, state.setup.tools[call.tool])
            return ToolReconciled(effect=effect, outcome="happened", by=by, output=told, **given)
        case "run_again":
            return ToolReconciled(effect=effect, outcome="run_again", by=by)
        case "do_not_run":
            told = f"{UNKNOWN_OUTCOME}{note}"
            return ToolReconciled(effect=effect, outcome="unknown", by=by, output=told)
