"""The read models `sessions` and `work`: one row for each session."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from itertools import starmap
from typing import Any, ClassVar, NamedTuple

from sqlite_utils import Database

from cueline.events.codes import Cause
from cueline.events.store import from_us, to_us
from cueline.projections.row import LARGEST, Names, ask, matching, select
from cueline.projections.usage import Spending

TERMINAL = ("completed", "failed", "stopped")
_QUEUED = '{"code":"queued"'
DRIVEN = ("running", "stopping")
"""In these, a session needs a host."""
_LABEL = "? IN (SELECT key || '\x1f' || value FROM json_each(labels_json))"
_PAUSED = "(coalesce(wait_kind, '') = 'operator' OR exhausted)"


@dataclass(frozen=True, slots=True)
class Tokens:
    """Tokens of model calls; the fields are those of `Usage`."""

    input: int
    output: int
    cache_read: int
    cache_write: int


@dataclass(frozen=True, slots=True)
class SessionReadModel(Spending):
    """One session, from its inbox and its stream."""

    TABLE: ClassVar[str] = "sessions"
    KEY: ClassVar[Names] = ("stream",)
    INDEXES: ClassVar[tuple[Names, ...]] = (
        ("id",),
        ("status", "updated_us"),
        ("updated_us",),
        ("due_us", "stream"),
        ("wait_kind", "deadline_us"),
        ("claimed_by",),
        ("blueprint", "queue_position"),
    )

    stream: str
    id: str
    """The name for users."""
    status: str = "created"
    agent: str = ""
    provider: str = ""
    """The model called last: the agent's own, or a fallback."""
    model: str = ""
    models_json: str = "[]"
    """Provider and model of each model, if there are several."""
    goal: str | None = None
    parameters_json: str = "{}"
    open: bool = False
    attached: bool = False
    labels_json: str = "{}"
    tools_json: str = "{}"
    """By tool: its declaration about repeated calls."""
    created_us: int = 0
    started_us: int | None = None
    updated_us: int = 0
    version: int = 0
    epoch: int = 0
    """The last owner."""
    wait_kind: str | None = None
    wait_cause: str | None = None
    """The cause's code and parameters, in JSON."""
    exhausted: bool = False
    """The budget is spent: only a raised limit helps."""
    deadline_us: int | None = None
    inbox_length: int = 0
    inbox_read: int = 0
    due_us: int | None = None
    """From when somebody has to look at it: 0 now, None never."""
    turns: int = 0
    tool_calls: int = 0
    result: str | None = None
    partial: bool = False
    """A tool that is not critical failed on the way."""
    error: str | None = None
    """The text of a vendor or person, or the approval that nobody decided."""
    error_kind: str | None = None
    """The error code, or the code of the stop."""
    stopped_by: str | None = None
    recoverable: bool = False
    takeovers: int = 0
    lost_attempts: int = 0
    in_doubt: int = 0
    """Tool calls in doubt now."""
    reconciled: int = 0
    blueprint: str = ""
    """Of a run, the name that it was started by; empty: it is no run."""
    claimed_by: str | None = None
    """Of a run, the incarnation that claimed it last; None while it is queued."""
    queue_position: int | None = None
    """Of a run, where in the log it came to the queue; None before that, and after its end."""
    retry_of: str | None = None
    """The run that it is another try of."""
    child_of: str | None = None
    """The parent session."""
    root: str = ""
    """The topmost session of its tree; itself without a parent."""
    parent: str | None = None
    """The stream that it was forked from."""
    parent_version: int = 0
    inherited_turns: int = 0
    """The usage of the forked past; it was not spent here."""
    inherited_tool_calls: int = 0
    inherited_input_tokens: int = 0
    inherited_output_tokens: int = 0
    inherited_cache_read_tokens: int = 0
    inherited_cache_write_tokens: int = 0
    inherited_cost: str = "0"

    @property
    def shown_status(self) -> str:
        """The status for lists: a session that waits for a person to resume is `paused`."""
        paused = self.wait_kind == "operator" or self.exhausted
        return "paused" if self.status == "waiting" and paused else self.status

    @property
    def run_status(self) -> str:
        """The status of a run: `queued` and `claimed` before its first reply, else as shown."""
        is_new = self.status == "created" and self.wait_kind != "time"
        is_queued = is_new or (self.wait_cause or "").startswith(_QUEUED)
        is_queued = is_queued or (self.status == "running" and self.claimed_by is None)
        if is_queued and not self.finished:
            return "queued"
        # A plan has no model, and no turns.
        is_claimed = self.status == "running" and self.model != "" and not self.turns
        return "claimed" if is_claimed else self.shown_status

    @property
    def awaited_place(self) -> int | None:
        """Of a run that waits to be admitted, how many of its blueprint may run at a time."""
        if not (self.wait_cause or "").startswith(_QUEUED):
            return None
        return int(json.loads(str(self.wait_cause)).get("of", 0)) or None

    @property
    def finished(self) -> bool:
        """Whether its status is final (I6)."""
        return self.status in TERMINAL

    @property
    def usd(self) -> Decimal:
        """Its cost, in US dollars."""
        return Decimal(self.cost)

    @property
    def parameters(self) -> dict[str, Any]:
        """The parameters given at its start."""
        return dict(json.loads(self.parameters_json))

    @property
    def labels(self) -> dict[str, str]:
        """The labels given at its start."""
        return dict(json.loads(self.labels_json))

    @property
    def tokens(self) -> Tokens:
        """What it has used itself."""
        return Tokens(
            self.input_tokens, self.output_tokens, self.cache_read_tokens, self.cache_write_tokens
        )

    @property
    def unread(self) -> int:
        """Messages in its inbox that it has not read."""
        return self.inbox_length - self.inbox_read

    @property
    def created_at(self) -> datetime:
        """When it was asked for."""
        return from_us(self.created_us)

    @property
    def started_at(self) -> datetime | None:
        """When its first fact was recorded."""
        return None if self.started_us is None else from_us(self.started_us)

    @property
    def updated_at(self) -> datetime:
        """When its last fact was recorded."""
        return from_us(self.updated_us)

    @property
    def deadline_at(self) -> datetime | None:
        """When its wait ends by itself."""
        return None if self.deadline_us is None else from_us(self.deadline_us)


class Due(NamedTuple):
    """A session with work."""

    stream: str
    due_us: int
    """Since when; 0 if it is running, or has unread messages."""
    unread: int
    """The number of unread messages."""


_FIRST = Due("", -1, 0)
LAST_PENDING = Due("", 1, 0)
"""Behind it are the sessions with a deadline, which is a time of this century."""
_DUE = """
SELECT stream, due_us, inbox_length - inbox_read FROM sessions
WHERE due_us <= ? AND (due_us, stream) > (?, ?) ORDER BY due_us, stream LIMIT ?
"""
_WAITING = """
SELECT stream FROM sessions WHERE status = 'waiting' AND wait_kind = ? ORDER BY deadline_us
"""
_WAITING_BY_CAUSE = """
SELECT stream FROM sessions
WHERE status = 'waiting' AND wait_kind = ? AND wait_cause = ? ORDER BY deadline_us
"""
_CAUSES = """
SELECT wait_cause, count(*) FROM sessions WHERE wait_kind = ? GROUP BY wait_cause
"""
_CLAIMED = """
SELECT stream, claimed_by, inbox_length - inbox_read FROM sessions
WHERE claimed_by IS NOT NULL AND status NOT IN (?, ?, ?)
"""
_OLDEST = """
SELECT stream FROM sessions
WHERE blueprint = ? AND queue_position IS NOT NULL ORDER BY queue_position LIMIT ?
"""
_RUNNING = "SELECT stream FROM sessions WHERE status IN (?, ?) ORDER BY updated_us"


def list_sessions(
    db: Database,
    *,
    status: str | None = None,
    agent: str | None = None,
    labels: Mapping[str, str] | None = None,
    since: datetime | None = None,
    limit: int = 100,
) -> list[SessionReadModel]:
    """Return sessions, last changed first; *status* may also be `paused`."""
    paused = status == "paused"
    labelled = [(_LABEL, f"{key}\x1f{value}") for key, value in (labels or {}).items()]
    where, values = matching(
        [
            ("status = ?", "waiting" if paused else status),
            (f"{_PAUSED} = ?", paused or None),
            ("agent = ?", agent),
            ("updated_us >= ?", None if since is None else to_us(since)),
            *labelled,
        ]
    )
    return select(db, SessionReadModel, f"{where} ORDER BY updated_us DESC, stream", values, limit)


def list_runs(
    db: Database, *, blueprint: str | None = None, runner: str | None = None, limit: int = LARGEST
) -> list[SessionReadModel]:
    """Return runs, last changed first."""
    where, values = matching(
        [("blueprint <> ?", ""), ("blueprint = ?", blueprint), ("claimed_by = ?", runner)]
    )
    return select(db, SessionReadModel, f"{where} ORDER BY updated_us DESC, stream", values, limit)


def find_session(db: Database, name: str) -> SessionReadModel | None:
    """Return the session with this stream or id."""
    found = select(db, SessionReadModel, "WHERE stream = ? OR id = ?", [name, name], 1)
    return found[0] if found else None


def due_work(
    db: Database, now: datetime, *, after: Due = _FIRST, limit: int = LARGEST
) -> list[Due]:
    """Return the sessions with work, nearest deadline first; a page begins *after* a row.

    A session has work if its inbox holds unread messages, its deadline has passed, or it is
    `running` or `stopping` (with or without a living owner).
    """
    asked = [to_us(now), after.due_us, after.stream, limit]
    return list(starmap(Due, ask(db, SessionReadModel.TABLE, _DUE, asked)))


def pending_work(db: Database, *, after: str, limit: int) -> list[Due]:
    """Return one page of the sessions with work at any time, by stream, *after* a stream."""
    return due_work(db, from_us(0), after=Due(after, 0, 0), limit=limit)


def waiting(db: Database, kind: str, cause: Cause | None = None) -> list[str]:
    """Return the streams that wait for *kind*, by that *cause*, nearest deadline first."""
    sql, asked = _WAITING, [kind]
    if cause is not None:
        sql, asked = _WAITING_BY_CAUSE, [kind, cause.model_dump_json()]
    return [stream for (stream,) in ask(db, SessionReadModel.TABLE, sql, asked)]


def causes(db: Database, kind: str) -> list[tuple[Cause, int]]:
    """Return the causes of the waits for *kind*, each with its number of sessions."""
    found = ask(db, SessionReadModel.TABLE, _CAUSES, [kind])
    return [(Cause.model_validate_json(cause), sessions) for cause, sessions in found]


def claimed_runs(db: Database) -> list[tuple[str, str, int]]:
    """Return the runs that have not ended: stream, the runner that claimed it, unread messages."""
    return ask(db, SessionReadModel.TABLE, _CLAIMED, TERMINAL)


def oldest_runs(db: Database, blueprint: str, limit: int) -> list[str]:
    """Return the streams of so many runs that have not ended, in the order of their start."""
    asked = [blueprint, limit]
    return [stream for (stream,) in ask(db, SessionReadModel.TABLE, _OLDEST, asked)]


def running(db: Database) -> list[str]:
    """Return the streams that need a host."""
    return [stream for (stream,) in ask(db, SessionReadModel.TABLE, _RUNNING, DRIVEN)]
