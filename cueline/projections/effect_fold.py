"""Applies facts to the rows of effects."""

import json

from cueline.events.session import (
    ApprovalRequested,
    ApprovalResolved,
    CallDelegated,
    CallsAdded,
    LostAttempt,
    ModelFailed,
    ModelReplied,
    ModelRequested,
    ModelStarted,
    OutcomeCameLate,
    PeopleNotified,
    ReservationClosed,
    SessionTakenOver,
    ToolFailed,
    ToolInDoubt,
    ToolReconciled,
    ToolReturned,
    ToolSkipped,
    ToolStarted,
    calls_of,
)
from cueline.events.store import RecordedEvent
from cueline.events.stream import effect_of, is_model_call
from cueline.projections.effect import Effect
from cueline.projections.row import Row, Rows, new_row
from cueline.projections.summary import Used, spent
from cueline.projections.usage import add


class EffectFold:
    """Applies the facts of effects in a batch of events."""

    def __init__(self, effects: Rows) -> None:
        self._effects = effects

    def fold(  # noqa: C901 - one case a fact is a table, not a maze
        self, session: Row, recorded: RecordedEvent, fact: object
    ) -> str:
        """Apply one event of *session*; return the tool that it is about."""
        match fact:
            case ModelStarted() | ToolStarted() | CallDelegated():
                return self._started(session, recorded, fact)
            case ModelRequested():
                self._model_requested(session, recorded, fact)
            case ModelReplied():
                self._replied(session, recorded, fact)
            case CallsAdded():
                self._requested(session, recorded, fact)
            case ToolReturned() | ToolSkipped() | ModelFailed() | ToolFailed():
                return self._over(session, recorded, fact)
            case ToolInDoubt() | ToolReconciled():
                return self._in_doubt(session, recorded, fact)
            case ApprovalRequested() | PeopleNotified() | OutcomeCameLate():
                return self._tool_of(session, fact.effect)
            case ApprovalResolved(approval=approval):
                return self._tool_of(session, effect_of(approval))
            case ReservationClosed(outcome="estimated", effect=effect, usd=usd):
                add(self._row(session, recorded, effect, "model"), Used(cost=usd, estimated=usd))
            case SessionTakenOver(lost_attempts=lost):
                self._lost(session, recorded, lost)
        return ""

    def _tool_of(self, session: Row, effect: str) -> str:
        found = self._effects.find(session["stream"], effect)
        return str(found["tool"]) if found else ""

    def _row(self, session: Row, recorded: RecordedEvent, effect: str, kind: str) -> Row:
        """Return the effect's row; a fork may get results of effects that its past requested."""
        found = self._effects.find(session["stream"], effect)
        return found or self._new(session, recorded, effect, kind)

    def _new(self, session: Row, recorded: RecordedEvent, effect: str, kind: str) -> Row:
        stream = session["stream"]
        return self._effects.add(
            new_row(
                Effect,
                stream=stream,
                effect=effect,
                kind=kind,
                key=f"{stream}/{effect}",
                requested_version=recorded.version,
            )
        )

    def _started(
        self,
        session: Row,
        recorded: RecordedEvent,
        fact: ModelStarted | ToolStarted | CallDelegated,
    ) -> str:
        kind = "model" if isinstance(fact, ModelStarted) else "tool"
        row = self._row(session, recorded, fact.effect, kind)
        row["status"] = "started"
        row["attempts"] = max(row["attempts"], fact.attempt)
        if row["started_position"] is None:
            row["started_position"] = recorded.position
        if not isinstance(fact, ModelStarted):
            row["runner"] = "" if isinstance(fact, CallDelegated) else fact.runner
            row["tool"] = fact.tool
        return str(row["tool"])

    def _model_requested(self, session: Row, recorded: RecordedEvent, fact: ModelRequested) -> None:
        # A first attempt is new, and so is a call that a reply requests: looking for the row would
        # cost as much as everything else.
        if fact.attempt == 1:
            self._new(session, recorded, fact.effect, "model")
        else:
            row = self._row(session, recorded, fact.effect, "model")
            row["status"] = "requested"
            row["ended_position"] = row["ended_version"] = None

    def _replied(self, session: Row, recorded: RecordedEvent, fact: ModelReplied) -> None:
        row = self._row(session, recorded, fact.effect, "model")
        add(row, spent(fact.usage, fact.cost))
        row["seconds"] = fact.seconds
        _end(row, recorded, "returned")
        self._requested(session, recorded, fact)

    def _requested(
        self, session: Row, recorded: RecordedEvent, fact: ModelReplied | CallsAdded
    ) -> None:
        if not fact.calls:
            return
        declared = json.loads(session["tools_json"])
        for effect, call in calls_of(fact).items():
            requested = self._new(session, recorded, effect, "tool")
            requested["tool"], requested["declared"] = call.name, declared.get(call.name, "")

    def _over(
        self,
        session: Row,
        recorded: RecordedEvent,
        fact: ToolReturned | ToolSkipped | ModelFailed | ToolFailed,
    ) -> str:
        kind = "model" if isinstance(fact, ModelFailed) else "tool"
        row = self._row(session, recorded, fact.effect, kind)
        if isinstance(fact, ToolReturned | ToolFailed):
            row["seconds"] = fact.seconds
        if isinstance(fact, ModelFailed):
            add(row, spent(fact.usage, fact.cost))
        if isinstance(fact, ModelFailed | ToolFailed):
            row["lost"] += fact.kind == "lost"
        match fact:
            case ToolReturned():
                _end(row, recorded, "returned")
            case ToolSkipped():
                _end(row, recorded, "skipped")
            case _ if fact.retry_at is not None:
                row["status"] = "retry"
            case _:
                _end(row, recorded, "failed")
        return str(row["tool"])

    def _in_doubt(
        self, session: Row, recorded: RecordedEvent, fact: ToolInDoubt | ToolReconciled
    ) -> str:
        row = self._row(session, recorded, fact.effect, "tool")
        before = row["in_doubt"]
        if isinstance(fact, ToolInDoubt):
            row["status"], row["in_doubt"] = "in_doubt", True
        elif fact.outcome in ("did_not_happen", "run_again"):
            row["status"], row["in_doubt"] = "requested", False
        elif fact.output:
            # Without a text for the model it stays in doubt, and a person is asked.
            row["in_doubt"] = False
            _end(row, recorded, "reconciled")
        session["in_doubt"] += row["in_doubt"] - before
        return str(row["tool"])

    def _lost(
        self, session: Row, recorded: RecordedEvent, attempts: tuple[LostAttempt, ...]
    ) -> None:
        for attempt in attempts:
            kind = "model" if is_model_call(attempt.effect) else "tool"
            row = self._row(session, recorded, attempt.effect, kind)
            row["lost"] += 1
            row["status"] = "retry"
            add(row, spent(None, attempt.cost))


def _end(row: Row, recorded: RecordedEvent, status: str) -> None:
    row["status"] = status
    row["ended_position"], row["ended_version"] = recorded.position, recorded.version
