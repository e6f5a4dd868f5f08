"""The read models `sessions` and `work`: one row for each session."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from itertools import starmap
from typing import Annotated, Any, ClassVar, NamedTuple

from sqlite_utils import Database

from cueline.events.codes import DRIVEN, TERMINAL, Cause
from cueline.events.store import from_us, to_us
from cueline.projections.row import LARGEST, Id, Names, Read, ask, matching, select

_LABEL = "? IN (SELECT key || '\x1f' || value FROM json_each(labels_json))"
_SHOWN = "CASE WHEN paused THEN 'paused' ELSE status END"
_QUEUED = """substr(coalesce(wait_cause, ''), 1, 16) = '{"code":"queued"'"""
# A plan has no model, and no turns.
_RUN_STATUS = f"""
CASE WHEN status IN ('completed', 'failed', 'stopped') THEN status
    WHEN status = 'created' AND coalesce(wait_kind, '') <> 'time' THEN 'queued'
    WHEN {_QUEUED} OR status = 'running' AND claimed_by IS NULL THEN 'queued'
    WHEN status = 'running' AND model <> '' AND turns = 0 THEN 'claimed' ELSE {_SHOWN} END
"""
_TOKENS = " || ',' || ".join(
    f"{name}_tokens" for name in ("input", "output", "cache_read", "cache_write")
)


@dataclass(frozen=True, slots=True)
class Tokens:
    """Tokens of model calls; the fields are those of `Usage`."""

    input: int
    output: int
    cache_read: int
    cache_write: int


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionRow:
    """One session: what it is, how it stands, what it used."""

    TABLE: ClassVar[str] = "sessions"

    id: str
    status: Annotated[str, Read(_SHOWN, column="status", kind=str, blank="created")]
    """One of `STATUSES`; a session that waits for a person to go on is `paused`."""
    driven: Annotated[bool | None, Read()] = None
    """Whether a living process drives it; None if none has to."""
    silence: Annotated[str | None, Read()] = None
    """The process that should run it, and has given no sign for long; None if there is none."""
    agent: str
    provider: str
    """Of the model called last: the agent's own, or a fallback."""
    model: str
    goal: str | None
    parameters: Mapping[str, Any]
    open: bool
    labels: Mapping[str, str]
    created_at: datetime
    started_at: datetime | None
    updated_at: datetime
    wait_kind: str | None
    wait_cause: Annotated[Mapping[str, object] | None, Read("wait_cause", column="wait_cause")]
    """Why it waits, as a code with its parameters."""
    deadline_at: datetime | None
    """When its wait ends by itself."""
    version: int
    unread: Annotated[int, Read("inbox_length - inbox_read")]
    """Messages in its inbox that it has not read."""
    turns: int
    tool_calls: int
    tokens: Annotated[Tokens, Read(_TOKENS, load=lambda text: Tokens(*map(int, text.split(","))))]
    cost: Decimal
    """In US dollars."""
    assumed_cost: Decimal
    """The part of it whose prices are assumed."""
    estimated_cost: Decimal
    """The part of it that nobody knows: the most that calls of unknown use may have cost."""
    unpriced: int
    """Answers whose price nobody knows."""
    result: str | None
    partial: bool
    """A tool that is not critical failed on the way to the result."""
    error: str | None
    """The words of a vendor or a person, or the approval that nobody decided."""
    error_kind: str | None
    """The kind of the failure, or the code of the stop."""
    stopped_by: str | None
    recoverable: bool
    takeovers: int
    lost_attempts: int
    in_doubt: int
    """Tool calls that are in doubt now."""
    parent: Annotated[Id | None, Read("child_of")]
    """The id of the session that asked for it."""
    root: Id
    """The id of the topmost session of its tree."""
    forked_from: Annotated[Id | None, Read("parent")]
    forked_at: Annotated[int | None, Read("CASE WHEN parent IS NOT NULL THEN parent_version END")]
    """The last version that it shares with the session it was forked from."""
    inherited_turns: int
    inherited_cost: Decimal
    """What the shared past used; none of it was spent here."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionReadModel(SessionRow):
    """A session with the columns that only cueline asks for."""

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
    paused: bool
    """It waits, and only a person can have it go on."""
    models_json: str = "[]"
    """Provider and model of each model, if there are several."""
    attached: bool
    tools_json: str = "{}"
    """By tool: its declaration about repeated calls."""
    epoch: int
    """The last owner."""
    inbox_length: int
    inbox_read: int
    due_us: int | None
    """From when somebody has to look at it: 0 now, None never."""
    input_tokens: int
    output_tokens: int
    cache_read_tokens: int
    cache_write_tokens: int
    reconciled: int
    blueprint: str
    """Of a run, the name that it was started by; empty: it is no run."""
    claimed_by: str | None
    """Of a run, the incarnation that claimed it last; None while it is queued."""
    queue_position: int | None
    """Of a run, where in the log it came to the queue; None before that, and after its end."""
    retry_of: str | None
    """The run that it is another try of."""
    child_of: str | None
    """The parent session."""
    fork_of: Annotated[str | None, Read("sessions.parent", column="parent")]
    """The stream that it was forked from."""
    parent_version: int
    inherited_tool_calls: int
    """The usage of the forked past; it was not spent here."""
    inherited_input_tokens: int
    inherited_output_tokens: int
    inherited_cache_read_tokens: int
    inherited_cache_write_tokens: int


@dataclass(frozen=True, slots=True, kw_only=True)
class RunRow:
    """A run, and where it runs."""

    TABLE: ClassVar[str] = "sessions"

    id: str
    status: Annotated[str, Read(_RUN_STATUS)]
    """`queued`: no runner has claimed it. `claimed`: nothing of it has ended yet."""
    blueprint: str
    runner: Annotated[str | None, Read("claimed_by")]
    """The incarnation that claimed it last."""
    retry_of: Id | None
    """The id of the run that it is another try of."""
    created_at: datetime
    updated_at: datetime
    starts_at: Annotated[datetime | None, Read("CASE WHEN wait_kind = 'time' THEN deadline_us END")]
    """When it is queued, if it waits for its time."""
    max_running: Annotated[
        int | None,
        Read(
            f"CASE WHEN {_QUEUED} THEN wait_cause END",
            load=lambda cause: json.loads(cause).get("of") or None,
        ),
    ]
    """So many of its blueprint may run at a time, if it waits for its turn."""
    error: str | None
    error_kind: str | None


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
) -> list[SessionRow]:
    """Return sessions, last changed first; *status* may also be `paused`."""
    paused = status == "paused"
    labelled = [(_LABEL, f"{key}\x1f{value}") for key, value in (labels or {}).items()]
    where, values = matching(
        [
            ("status = ?", "waiting" if paused else status),
            ("paused = ?", paused or None),
            ("agent = ?", agent),
            ("updated_us >= ?", None if since is None else to_us(since)),
            *labelled,
        ]
    )
    return select(db, SessionRow, f"{where} ORDER BY updated_us DESC, stream", values, limit)


def list_runs(
    db: Database,
    *,
    status: str | None = None,
    blueprint: str | None = None,
    runner: str | None = None,
    limit: int = LARGEST,
) -> list[RunRow]:
    """Return runs, last changed first."""
    where, values = matching(
        [
            ("blueprint <> ?", ""),
            ("blueprint = ?", blueprint),
            ("claimed_by = ?", runner),
            (f"{_RUN_STATUS} = ?", status),
        ]
    )
    return select(db, RunRow, f"{where} ORDER BY updated_us DESC, stream", values, limit)


def find_session(db: Database, name: str) -> SessionRow | None:
    """Return the session with this stream or id."""
    found = select(db, SessionRow, "WHERE stream = ? OR id = ?", [name, name], 1)
    return found[0] if found else None


def due_work(
    db: Database, now: datetime, *, after: Due = _FIRST, limit: int = LARGEST
) -> list[Due]:
    """Return the sessions with work, nearest deadline first; a page begins *after* a row.

    A session has work if its inbox holds unread messages, its deadline has passed, or it is
    `running` or `stopping` (with or without a living owner).
    """
    asked = [to_us(now), after.due_us, after.stream, limit]
    return list(starmap(Due, ask(db, SessionRow.TABLE, _DUE, asked)))


def pending_work(db: Database, *, after: str, limit: int) -> list[Due]:
    """Return one page of the sessions with work at any time, by stream, *after* a stream."""
    return due_work(db, from_us(0), after=Due(after, 0, 0), limit=limit)


def waiting(db: Database, kind: str, cause: Cause | None = None) -> list[str]:
    """Return the streams that wait for *kind*, by that *cause*, nearest deadline first."""
    sql, asked = _WAITING, [kind]
    if cause is not None:
        sql, asked = _WAITING_BY_CAUSE, [kind, cause.model_dump_json()]
    return [stream for (stream,) in ask(db, SessionRow.TABLE, sql, asked)]


def causes(db: Database, kind: str) -> list[tuple[Cause, int]]:
    """Return the causes of the waits for *kind*, each with its number of sessions."""
    found = ask(db, SessionRow.TABLE, _CAUSES, [kind])
    return [(Cause.model_validate_json(cause), sessions) for cause, sessions in found]


def claimed_runs(db: Database) -> list[tuple[str, str, int]]:
    """Return the runs that have not ended: stream, the runner that claimed it, unread messages."""
    return ask(db, SessionRow.TABLE, _CLAIMED, sorted(TERMINAL))


def oldest_runs(db: Database, blueprint: str, limit: int) -> list[str]:
    """Return the streams of so many runs that have not ended, in the order of their start."""
    asked = [blueprint, limit]
    return [stream for (stream,) in ask(db, SessionRow.TABLE, _OLDEST, asked)]


def running(db: Database) -> list[str]:
    """Return the streams that need a host."""
    return [stream for (stream,) in ask(db, SessionRow.TABLE, _RUNNING, sorted(DRIVEN))]
