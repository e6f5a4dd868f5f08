"""Records a session whose rules raise: the reported facts, and a pause.

A bug in the rules loses no outcome: the outcome is also recorded if the rules raise. With
corrected rules, the session continues from there.
"""

import traceback
from collections.abc import Sequence
from pathlib import Path

from msgspec.structs import replace

from cueline.deciders.session import SessionState, Status, evolve
from cueline.deciders.session.decide import opening_of
from cueline.deciders.session.state import SessionHold, Wait
from cueline.events.codes import Cause
from cueline.events.session import (
    Judgement,
    ModelReplied,
    SessionEvent,
    SessionWaiting,
    ToolFailed,
    ToolInDoubt,
    calls_of,
)

_HAPPENED = frozenset(
    {
        "MessageReceived",
        "ModelFailed",
        "ModelReplied",
        "PeopleNotified",
        "ReservationClosed",
        "SessionForked",
        "SessionStarted",
        "SessionTakenOver",
        "ToolAsked",
        "ToolDeferred",
        "ToolFailed",
        "ToolInDoubt",
        "ToolReconciled",
        "ToolReturned",
    }
)
"""The facts that no process would report again; the next owner requests all other facts again."""
_UNKNOWN = frozenset({"lost", "cancelled", "killed"})
"""The errors of calls that may have had effects."""
_UNJUDGED = "The rules failed before they could judge this call; nothing was run. Ask again."


def pause_of(error: Exception) -> SessionWaiting:
    """Return the pause of a session in whose rules *error* was raised."""
    return SessionWaiting(kind="operator", cause=_cause(error))


def _cause(error: Exception) -> Cause:
    frames = traceback.extract_tb(error.__traceback__)
    where = f" ({Path(frames[-1].filename).name}:{frames[-1].lineno})" if frames else ""
    return Cause(code="rule_failed", message=f"{type(error).__name__}: {error}{where}")


def held_after(state: SessionState, event: SessionEvent | None, error: Exception) -> SessionState:
    """Return *state* as paused, for readers of a session whose fold of *event* raised."""
    cause = _cause(error)
    return replace(
        state,
        status=Status.WAITING,
        waiting=Wait("operator", cause),
        hold=SessionHold(cause),
        inbox_read=getattr(event, "inbox_version", state.inbox_read),
    )


def folded(state: SessionState, event: SessionEvent) -> SessionState:
    """Return the state after *event*; a paused one if the rules raise."""
    try:
        return evolve(state, event)
    except Exception as error:  # noqa: BLE001 - whatever the rules raise
        return held_after(state, event, error)


def known_facts(state: SessionState, facts: Sequence[SessionEvent]) -> list[SessionEvent]:
    """Return the *facts* that were reported, completed by the rules; unchanged if these raise."""
    known: list[SessionEvent] = []
    for fact in facts:
        if fact.type not in _HAPPENED:
            continue
        kept: SessionEvent | None
        try:
            kept = opening_of(fact, state)
        except Exception:  # noqa: BLE001 - whatever the rules raise
            kept = _as_it_came(fact)
        if kept is not None:
            known.append(kept)
            state = folded(state, kept)
    return known


def _as_it_came(fact: SessionEvent) -> SessionEvent:
    """Return *fact* changed so that no call runs without a judgement, or twice."""
    match fact:
        case ModelReplied():
            unjudged = Judgement(answer="allow", rule="", problem=_UNJUDGED)
            return fact.model_copy(update={"judged": dict.fromkeys(calls_of(fact), unjudged)})
        case ToolFailed(kind=kind, message=message) if kind in _UNKNOWN:
            cause = Cause(code="tool_failed", failure=kind, message=message)
            return ToolInDoubt(effect=fact.effect, attempt=fact.attempt, cause=cause)
        case _:
            return fact
