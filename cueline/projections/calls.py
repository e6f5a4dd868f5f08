"""Reads from the facts of a session how its calls change: those of models and those of tools."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from cueline.events.event_text import doubt_text
from cueline.events.message import ToolCall
from cueline.events.session import (
    ApprovalRequested,
    ApprovalResolved,
    CallDelegated,
    CallsAdded,
    ModelFailed,
    ModelReplied,
    ModelRequested,
    ModelStarted,
    OutcomeCameLate,
    PeopleNotified,
    ReservationClosed,
    SessionTakenOver,
    ToolAsked,
    ToolDeferred,
    ToolFailed,
    ToolInDoubt,
    ToolReconciled,
    ToolReturned,
    ToolSkipped,
    ToolStarted,
    calls_of,
)
from cueline.events.stream import effect_of
from cueline.projections.summary import Used, spent, used_by

OVER = frozenset({"returned", "failed", "skipped", "reconciled"})
"""The statuses of a call that is over."""


@dataclass(slots=True, kw_only=True)
class CallChange:
    """What one fact changes in one call; a field that the fact does not concern has its default."""

    effect: str
    status: str = ""
    """The new status, as in `Effect`; `lost`: its attempt ended with the owner of the session;
    empty: as before."""
    call: ToolCall | None = None
    """The call of a tool that is requested for the first time."""
    attempt: int = 0
    """The attempt that is requested or started."""
    tool: str = ""
    runner: str = ""
    """The runner that gets the attempt."""
    child: str = ""
    """The child session that the call started."""
    rule: str | None = None
    """The rule that allows the attempt, or that denies the call."""
    edit: Mapping[str, object] | None = None
    """The arguments that a person allowed instead."""
    output: str | None = None
    whole: str | None = None
    seconds: float | None = None
    files: Sequence[str] = ()
    """The paths of the files that it changed."""
    kind: str | None = None
    message: str | None = None
    retry_at: datetime | None = None
    outcome: str | None = None
    by: str | None = None
    degraded: bool = False
    used: Used | None = None
    """The usage that the fact adds to a model call."""


_COPIED: Mapping[type, tuple[str, tuple[str, ...]]] = {
    ModelStarted: ("started", ("attempt",)),
    ToolStarted: ("started", ("attempt", "tool", "rule", "runner")),
    ToolReturned: ("returned", ("output", "whole", "seconds")),
    ModelRequested: ("requested", ("attempt",)),
    CallDelegated: ("started", ("attempt", "tool", "rule", "child")),
    ModelFailed: ("failed", ("kind", "message", "retry_at")),
    ToolFailed: ("failed", ("kind", "message", "retry_at", "seconds", "degraded")),
    ToolSkipped: ("skipped", ("rule", "degraded")),
    ToolAsked: ("asked", ("seconds",)),
    ToolDeferred: ("deferred", ("seconds",)),
    ToolInDoubt: ("in_doubt", ()),
    ToolReconciled: ("reconciled", ("output", "outcome", "by", "degraded")),
    ApprovalRequested: ("", ()),
    PeopleNotified: ("", ()),
    OutcomeCameLate: ("", ()),
}
"""The status after a fact about one call, and the fields that it has under the same names."""


def changes_of(fact: Any) -> Sequence[CallChange]:
    """Return the changes of calls by *fact*; the calls that a reply requests follow the reply."""
    if (copied := _COPIED.get(type(fact))) is not None:
        return [_copied_change(fact, *copied)]
    changes: Sequence[CallChange] = ()
    match fact:
        case ModelReplied(effect=effect, seconds=seconds):
            used = spent(fact.usage, fact.cost)
            replied = CallChange(effect=effect, status="returned", seconds=seconds, used=used)
            changes = [replied, *_requested(fact)]
        case CallsAdded():
            changes = _requested(fact)
        case ApprovalResolved(approval=approval, edit=edit):
            changes = [CallChange(effect=effect_of(approval), edit=edit)]
        case ReservationClosed(outcome="estimated", effect=effect):
            changes = [CallChange(effect=effect, used=used_by(fact))]
        case SessionTakenOver(lost_attempts=lost):
            changes = [
                CallChange(effect=each.effect, status="lost", used=spent(None, each.cost))
                for each in lost
            ]
    return changes


def _copied_change(fact: Any, status: str, names: Sequence[str]) -> CallChange:
    given = {name: getattr(fact, name) for name in names}
    change = CallChange(effect=fact.effect, status=status, **given)
    match fact:
        case ModelFailed():
            change.used = spent(fact.usage, fact.cost)
        case ToolSkipped(reason=reason):
            change.message = reason
        case ToolReturned(changes=changes) if changes:
            change.files = [each.path for each in changes]
        case ToolInDoubt(cause=cause):
            change.message = doubt_text(cause)
        case ToolReconciled(outcome="did_not_happen" | "run_again"):
            change.status, change.output = "requested", None
        case ToolReconciled(outcome="unknown", output=""):
            change.status = ""  # without a text for the model it stays in doubt
    if change.retry_at is not None:
        change.status = "retry"
    return change


def _requested(fact: ModelReplied | CallsAdded) -> list[CallChange]:
    return [
        CallChange(effect=effect, status="requested", call=call, tool=call.name)
        for effect, call in calls_of(fact).items()
    ]
