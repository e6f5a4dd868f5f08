"""The read models `sessions` and `work`: one row for each session."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from itertools import starmap
from sqlite3 import Connection
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, NamedTuple

from cueline.events.status import DRIVEN, TERMINAL
from cueline.events.store import from_us, to_us
from cueline.projections.read_model import LARGEST, Id, Names, Read, after, ask, matching, select

if TYPE_CHECKING:  # a list needs none of it
    from cueline.events.codes import Cause

OVER = tuple(map(str, sorted(TERMINAL)))
_LABEL = "? IN (SELECT key || '\x1f' || value FROM json_each(labels_json))"
_SHOWN = "CASE WHEN paused THEN 'paused' ELSE status END"
_QUEUED = """substr(coalesce(wait_cause, ''), 1, 16) = '{"code":"queued"'"""
# A plan has no model, and no turns.
_RUN_STATUS = f"""
CASE WHEN status IN {OVER} THEN status
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
    """One session: its origin, status and usage."""

    TABLE: ClassVar[str] = "sessions"

    id: str
    status: Annotated[str, Read(_SHOWN, column="status", kind=str, blank="created")]
    """One of `STATUSES`; a session that only a person can continue is `paused`."""
    driven: Annotated[bool | None, Read()] = None
    """Whether a living process drives it; None if it needs none."""
    silence: Annotated[str | None, Read()] = None
    """The process that should run it, and has been silent for long; None without one."""
    agent: str
    provider: str
    """The last called model: the agent's own, or a fallback."""
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
    """The reason of its wait, a code with its parameters."""
    deadline_at: datetime | None
    """The deadline of its wait."""
    version: int
    unread: Annotated[int, Read("inbox_length - inbox_read")]
    """The number of unread messages in its inbox."""
    turns: int
    tool_calls: int
    tokens: Annotated[Tokens, Read(_TOKENS, load=lambda text: Tokens(*map(int, text.split(","))))]
    cost: Decimal
    """The cost in US dollars."""
    assumed_cost: Decimal
    """The part of the cost at assumed prices."""
    estimated_cost: Decimal
    """The part of the cost whose usage is unknown: the highest possible cost."""
    unpriced: int
    """The number of answers without a known price."""
    result: str | None
    partial: bool
    """Whether a tool that is not critical failed."""
    error: str | None
    """The text of a vendor or person, or the approval that nobody decided."""
    error_kind: str | None
    """The error code, or the code of the stop."""
    stopped_by: str | None
    recoverable: bool
    takeovers: int
    lost_attempts: int
    in_doubt: int
    """The number of tool calls in doubt."""
    parent: Annotated[Id | None, Read("child_of")]
    """The id of its parent."""
    root: Id
    """The id of the topmost session of its tree."""
    forked_from: Annotated[Id | None, Read("parent")]
    forked_at: Annotated[int | None, Read("CASE WHEN parent IS NOT NULL THEN parent_version END")]
    """The last version that it shares with the session it was forked from."""
    inherited_turns: int
    inherited_cost: Decimal
    """The usage of the shared past, which is not the fork's own."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionReadModel(SessionRow):
    """A session with the columns for cueline's own queries."""

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
    started_by: str = ""
    """The actor of its start, as `user:ada`."""
    paused: bool
    """Whether only a person can continue it."""
    models_json: str = "[]"
    """Provider and model of each model, if there are several."""
    attached: bool
    tools_json: str = "{}"
    """The declaration of each tool about repeated calls."""
    epoch: int
    """The last owner."""
    inbox_length: int
    inbox_read: int
    due_us: int | None
    """The time from which it needs a host: 0 now, None never."""
    input_tokens: int
    output_tokens: int
    cache_read_tokens: int
    cache_write_tokens: int
    reconciled: int
    blueprint: str
    """The blueprint of a run; empty: it is no run."""
    claimed_by: str | None
    """The incarnation that last claimed the run; None while it is queued."""
    queue_position: int | None
    """The position at which the run was queued; None before that, and after its end."""
    retry_of: str | None
    """The run that this run tries again."""
    child_of: str | None
    """The parent session."""
    fork_of: Annotated[str | None, Read("sessions.parent", column="parent")]
    """The stream that it was forked from."""
    parent_version: int
    emptied: str
    """Why its content was removed: `erased`, `archived` or `cleaned`; empty: it was not."""
    archive: str
    """The file that has the removed content."""
    inherited_tool_calls: int
    """The usage of the forked past, which is not the fork's own."""
    inherited_input_tokens: int
    inherited_output_tokens: int
    inherited_cache_read_tokens: int
    inherited_cache_write_tokens: int


@dataclass(frozen=True, slots=True, kw_only=True)
class RunRow:
    """A run, and its runner."""

    TABLE: ClassVar[str] = "sessions"

    id: str
    status: Annotated[str, Read(_RUN_STATUS)]
    """`queued`: no runner has claimed it. `claimed`: none of its effects has ended yet."""
    blueprint: str
    runner: Annotated[str | None, Read("claimed_by")]
    """The incarnation that claimed it last."""
    retry_of: Id | None
    """The id of the run that this run tries again."""
    created_at: datetime
    updated_at: datetime
    starts_at: Annotated[datetime | None, Read("CASE WHEN wait_kind = 'time' THEN deadline_us END")]
    """The time at which it will be queued, if it waits for its time."""
    max_running: Annotated[
        int | None,
        Read(
            f"CASE WHEN {_QUEUED} THEN wait_cause END",
            load=lambda cause: int(json.loads(cause).get("of", 0)) or None,
        ),
    ]
    """The limit of runs of its blueprint at a time, if it waits for its turn."""
    error: str | None
    error_kind: str | None


class Due(NamedTuple):
    """A session with work."""

    stream: str
    due_us: int
    """The time from which it has work; 0 if it is running, or has unread messages."""
    unread: int
    """The number of unread messages."""


_FIRST = Due("", -1, 0)
LAST_PENDING = Due("", 1, 0)
"""The page key after all sessions with work at any time; later keys are deadlines."""
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
    db: Connection,
    *,
    status: str | None = None,
    agent: str | None = None,
    labels: Mapping[str, str] | None = None,
    text: str | None = None,
    min_cost: float | None = None,
    since: datetime | None = None,
    place: tuple[int, str] | None = None,
    limit: int = 100,
) -> list[SessionRow]:
    """Return sessions after *place*, last changed first; *status* may also be `paused`."""
    paused = status == "paused"
    labelled = [(_LABEL, f"{key}\x1f{value}") for key, value in (labels or {}).items()]
    where, values = matching(
        [
            ("status = ?", "waiting" if paused else status),
            ("paused = ?", paused or None),
            ("emptied = ?", ""),
            ("agent = ?", agent),
            ("instr(lower(id || ' ' || coalesce(goal, '')), ?) > 0", text and text.lower()),
            ("CAST(cost AS REAL) >= ?", min_cost),
            ("updated_us >= ?", None if since is None else to_us(since)),
            after(place),
            *labelled,
        ]
    )
    return select(db, SessionRow, f"{where} ORDER BY updated_us DESC, stream", values, limit)


def list_runs(
    db: Connection,
    *,
    status: str | None = None,
    blueprint: str | None = None,
    runner: str | None = None,
    place: tuple[int, str] | None = None,
    limit: int = LARGEST,
) -> list[RunRow]:
    """Return runs after *place*, last changed first."""
    where, values = matching(
        [
            ("blueprint <> ?", ""),
            ("blueprint = ?", blueprint),
            ("claimed_by = ?", runner),
            (f"{_RUN_STATUS} = ?", status),
            after(place),
        ]
    )
    return select(db, RunRow, f"{where} ORDER BY updated_us DESC, stream", values, limit)


def find_session(db: Connection, name: str) -> SessionRow | None:
    """Return the session with this stream or id."""
    found = select(db, SessionRow, "WHERE stream = ? OR id = ?", [name, name], 1)
    return found[0] if found else None


def due_work(
    db: Connection, now: datetime, *, after: Due = _FIRST, limit: int = LARGEST
) -> list[Due]:
    """Return the sessions with work, nearest deadline first; a page begins *after* a row.

    A session has work if its inbox holds unread messages, its deadline has passed, or it is
    `running` or `stopping` (with or without a living owner).
    """
    asked = [to_us(now), after.due_us, after.stream, limit]
    return list(starmap(Due, ask(db, SessionRow.TABLE, _DUE, asked)))


def pending_work(db: Connection, *, after: str, limit: int) -> list[Due]:
    """Return one page of the sessions with work at any time, by stream, *after* a stream."""
    return due_work(db, from_us(0), after=Due(after, 0, 0), limit=limit)


def waiting(db: Connection, kind: str, cause: "Cause | None" = None) -> list[str]:
    """Return the streams that wait for *kind*, by that *cause*, nearest deadline first."""
    sql, asked = _WAITING, [kind]
    if cause is not None:
        sql, asked = _WAITING_BY_CAUSE, [kind, cause.model_dump_json()]
    return [stream for (stream,) in ask(db, SessionRow.TABLE, sql, asked)]


def causes(db: Connection, kind: str) -> "list[tuple[Cause, int]]":
    """Return the causes of the waits for *kind*, each with its number of sessions."""
    found = ask(db, SessionRow.TABLE, _CAUSES, [kind])
    from cueline.events.codes import Cause  # noqa: PLC0415

    return [(Cause.model_validate_json(cause), sessions) for cause, sessions in found]


def claimed_runs(db: Connection) -> list[tuple[str, str, int]]:
    """Return the runs that have not ended: stream, the runner that claimed it, unread messages."""
    return ask(db, SessionRow.TABLE, _CLAIMED, sorted(TERMINAL))


def oldest_runs(db: Connection, blueprint: str, limit: int) -> list[str]:
    """Return the streams of the first unfinished runs, in the order of their start."""
    asked = [blueprint, limit]
    return [stream for (stream,) in ask(db, SessionRow.TABLE, _OLDEST, asked)]


def running(db: Connection) -> list[str]:
    """Return the streams that need a host."""
    return [stream for (stream,) in ask(db, SessionRow.TABLE, _RUNNING, sorted(DRIVEN))]


def count_statuses(db: Connection) -> dict[str, int]:
    """Return the number of sessions by status, as they are shown."""
    sql = f"SELECT {_SHOWN}, count(*) FROM sessions GROUP BY 1"  # noqa: S608 - constants
    return dict(ask(db, "sessions", sql))
