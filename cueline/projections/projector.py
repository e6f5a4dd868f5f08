"""Applies the events of the log to all read models."""

import json
from contextlib import suppress
from sqlite3 import Connection

from cueline.errors import CuelineError
from cueline.events.approval import (
    ApprovalDenied,
    ApprovalEvent,
    ApprovalExpired,
    ApprovalGranted,
    ApprovalOpened,
    ApprovalSuperseded,
    VoteGiven,
)
from cueline.events.inbox import DecisionGiven
from cueline.events.retention import SessionEmptied
from cueline.events.session import (
    MessageReceived,
    MessageRefused,
    SessionForked,
    ToolStarted,
)
from cueline.events.store import RecordedEvent, from_us, to_us
from cueline.events.stream import category_of, session_of_approval, shown, sibling, tenant_of
from cueline.projections import words
from cueline.projections.approval import Approval, opened
from cueline.projections.audit import AuditRow, Fault
from cueline.projections.breaker import Breaker
from cueline.projections.breaker_fold import fold_breaker
from cueline.projections.effect import Effect
from cueline.projections.effect_fold import EffectFold
from cueline.projections.fleet import WorkerRow, fold_worker
from cueline.projections.read_model import AppendOnlyRows, Row, Rows, new_row
from cueline.projections.sandbox import Sandbox, Slot
from cueline.projections.sandbox_fold import fold_sandbox, fold_slot
from cueline.projections.session import SessionReadModel
from cueline.projections.session_fold import fold_message, fold_session, settle_due
from cueline.projections.summary import Used, used_by
from cueline.projections.transcript import TranscriptLine
from cueline.projections.transcript_fold import lines
from cueline.projections.usage import DayUsage, UsageEntry, add, inherit, usage_entry
from cueline.sqlite_library import sqlite_library

_FORGET = (
    "DELETE FROM effects WHERE stream = ?",
    "DELETE FROM usage WHERE stream = ?",
    "DELETE FROM bookings WHERE stream = ?",
    "DELETE FROM transcript WHERE stream = ?",
    "DELETE FROM approvals WHERE session = ?",
    "UPDATE events SET tool = '' WHERE session = ?",
    words.FORGET,
)
"""Removes what came from the content of a session's events."""
_KEPT = (
    *("stream", "id", "version", "inbox_length", "created_us", "updated_us", "epoch"),
    "started_by",
)
"""The columns of an emptied session that do not come from the content of its events."""


class Projector:
    """Applies a batch of events; `flush` writes the changed rows."""

    def __init__(self, db: Connection) -> None:
        self._db = db
        self._sessions = Rows(db, SessionReadModel)
        self._effects = Rows(db, Effect)
        self._effect_fold = EffectFold(self._effects)
        self._approvals = Rows(db, Approval)
        self._breakers = Rows(db, Breaker)
        self._usage = Rows(db, DayUsage)
        self._bookings = AppendOnlyRows(db, UsageEntry)
        self._transcript = AppendOnlyRows(db, TranscriptLine)
        self._words: list[tuple[int, str]] = []
        self._fleet = Rows(db, WorkerRow)
        self._sandboxes = Rows(db, Sandbox)
        self._slots = Rows(db, Slot)
        self._events = AppendOnlyRows(db, AuditRow)
        self._faults = AppendOnlyRows(db, Fault)

    def project(self, recorded: RecordedEvent, fact: object) -> None:
        """Apply one event; a redacted or unknown fact leaves its audit columns only.

        An event for which a projection raises is noted as a `Fault`, with its audit columns only.
        """
        tool, session = "", ""
        try:
            tool, session = self._project(recorded, fact)
        except (CuelineError, sqlite_library().Error):
            raise  # the file's own trouble
        except Exception as error:  # noqa: BLE001 - one event must not keep the others from readers
            name = f"{shown(recorded.stream)}@{recorded.version} {recorded.type}"
            fault = (recorded.position, name, f"{type(error).__name__}: {error}")
            self._faults.add(fault)
        self._events.add(
            (
                *(recorded.position, recorded.recorded_us, recorded.stream, recorded.version),
                *(session, recorded.type, tool, recorded.actor, recorded.correlation_id),
            )
        )

    def _project(self, recorded: RecordedEvent, fact: object) -> tuple[str, str]:
        """Apply one event to the rows that it concerns; return its tool and its session."""
        tool, session = "", ""
        match category_of(recorded.stream):
            case "session":
                session = recorded.stream
                tool = self._project_session(recorded, fact)
            case "inbox":
                session = sibling(recorded.stream, "session")
                fold_message(self._session(session, recorded.recorded_us), recorded, fact)
                self._give(session, fact, waits=True)
            case "approval":
                tool, session = self._project_approval(recorded, fact)
            case "breaker":
                fold_breaker(self._breaker(recorded.stream), fact)
            case "fleet":
                fold_worker(self._fleet, recorded, fact)
            case "sandbox":
                fold_sandbox(self._sandboxes, recorded, fact)
            case "slots":
                fold_slot(self._slots, recorded, fact)
            case "retention":
                if isinstance(fact, SessionEmptied):
                    session = fact.session
                    self._empty(fact)
        return tool, session

    def flush(self) -> None:
        """Write all changes since the last flush."""
        for row in self._sessions.held():
            row["due_us"] = 0  # without a due time, a host looks at the session
            with suppress(Exception):
                settle_due(row)
        tables = (self._sessions, self._effects, self._approvals, self._breakers, self._usage)
        for table in tables:
            table.flush()
        self._bookings.flush()
        self._transcript.flush()
        self._events.flush()
        self._faults.flush()
        self._fleet.flush()
        self._sandboxes.flush()
        self._slots.flush()
        if self._words:
            self._db.executemany(words.ADD, self._words)
            self._words.clear()

    def _session(self, stream: str, recorded_us: int) -> Row:
        found = self._sessions.find(stream)
        if found is not None:
            return found
        begun = {"root": stream, "created_us": recorded_us, "updated_us": recorded_us}
        new = new_row(SessionReadModel, stream=stream, id=shown(stream), **begun)
        return self._sessions.add(new)

    def _breaker(self, stream: str) -> Row:
        found = self._breakers.find(stream)
        return found or self._breakers.add(new_row(Breaker, stream=stream, id=shown(stream)))

    def _project_session(self, recorded: RecordedEvent, fact: object) -> str:
        row = self._session(recorded.stream, recorded.recorded_us)
        fold_session(row, recorded, fact)
        tool = self._effect_fold.fold(row, recorded, fact)
        said = list(lines(recorded, fact, tool))
        for line in said:
            self._transcript.add(line)
        call = self._call(recorded.stream, fact) if isinstance(fact, ToolStarted) else ""
        if said or call:
            self._index(recorded.position, words.text_of(fact, said, call))
        if (used := used_by(fact)) is not None:
            self._use(row, recorded, fact, used)
        match fact:
            case MessageReceived() | MessageRefused():
                self._give(recorded.stream, fact.message, waits=False)
            case SessionForked():
                # The parent's usage is summed up from its `bookings` in the file.
                self.flush()
                inherit(self._db, self._session(recorded.stream, recorded.recorded_us))
        return tool

    def _call(self, stream: str, fact: ToolStarted) -> str:
        """Return the tool and the arguments of a call that starts."""
        found = self._effects.find(stream, fact.effect)
        return f"{fact.tool} {found['arguments']}" if found else ""

    def _index(self, position: int, text: str) -> None:
        if text:
            self._words.append((position, text))

    def _give(self, session: str, message: object, *, waits: bool) -> None:
        """Remember a decision while it is unread in the inbox."""
        if not isinstance(message, DecisionGiven):
            return
        found = self._approvals.find(f"approval-{tenant_of(session)}/{message.approval}")
        if found is None or found["digest"] != message.digest:
            return
        resolution = message.resolution or ""
        alike = (found["given"], found["resolution"]) == (message.verdict, resolution)
        if waits:
            people = f"{found['given_by']}, {message.by}" if alike else message.by
            found.update(given=message.verdict, given_by=people, resolution=resolution)
        elif alike:  # they are read in the order in which they were given
            left = found["given_by"].removeprefix(message.by).removeprefix(", ")
            found.update(given=message.verdict if left else "", given_by=left)
            if not left and found["status"] == "pending":
                found["resolution"] = ""  # it was refused

    def _use(self, session: Row, recorded: RecordedEvent, fact: object, used: Used) -> None:
        """Add a usage to the session, its bookings, and its usage of the day."""
        columns = used.columns()
        add(session, columns)
        provider, model = session["provider"], getattr(fact, "model", "") or session["model"]
        for booking in usage_entry(recorded, f"{provider}/{model}", columns):
            self._bookings.add(booking)
        lost = recorded.type == "SessionTakenOver" and used.lost_attempts
        if used.calls or used.failed or used.cost or lost:
            day = from_us(recorded.recorded_us).date().isoformat()
            key = dict(zip(DayUsage.KEY, (recorded.stream, provider, model, day), strict=True))
            row = self._usage.find(*key.values()) or self._usage.add(new_row(DayUsage, **key))
            add(row, columns)

    def _empty(self, fact: SessionEmptied) -> None:
        """Remove what came from the emptied events of a session: also what a rebuild has not."""
        self.flush()
        stream = fact.session
        before = self._session(stream, 0)
        for sql in _FORGET:
            self._db.execute(sql, [stream])
        row = new_row(SessionReadModel, **{name: before[name] for name in _KEPT})
        row.update(status=fact.status, agent=fact.agent, inbox_read=before["inbox_length"])
        row.update(emptied=fact.cause, archive=fact.archive)
        row.update(turns=fact.turns, tool_calls=fact.tool_calls)
        row["started_us"] = None if fact.started_at is None else to_us(fact.started_at)
        row["child_of"], row["root"] = fact.parent or None, fact.root
        for each in fact.usage:
            day = new_row(
                DayUsage, stream=stream, provider=each.provider, model=each.model, day=each.day
            )
            add(self._usage.add(day), each.columns())
            add(row, each.columns())
        self._sessions.add(row)

    def _project_approval(self, recorded: RecordedEvent, fact: object) -> tuple[str, str]:
        """Apply one event of an approval; return its tool and its session."""
        if isinstance(fact, ApprovalEvent):
            self._index(recorded.position, words.text_of_decision(fact))
        if isinstance(fact, ApprovalOpened):
            row = self._approvals.add(opened(recorded.stream, fact))
            return row["tool"], row["session"]
        found = self._approvals.find(recorded.stream)
        if found is None:
            return "", session_of_approval(recorded.stream)
        match fact:
            case VoteGiven():
                found["votes"] += 1
            case ApprovalGranted(by=by, note=note, edit=edit):
                found.update(status="granted", by=by, note=note)
                found["resolution"] = fact.resolution or ""
                found["edit_json"] = None if edit is None else json.dumps(edit, ensure_ascii=False)
            case ApprovalDenied(by=by, note=note):
                found.update(status="denied", by=by, note=note)
                found["resolution"] = fact.resolution or ""
            case ApprovalExpired():
                found.update(status="expired")
            case ApprovalSuperseded(reason=reason):
                found.update(status="superseded", note=reason)
        return found["tool"], found["session"]
