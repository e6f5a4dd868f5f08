"""The sessions of a log, as their read model has them."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal

from pydantic import JsonValue

from cueline.actors.session_owner import owners_of, silent_owner
from cueline.events.stream import shown
from cueline.projections import session as model
from cueline.projections.session import Tokens
from cueline.runtime.open_log import OpenLog

STATUSES = (
    "created",
    "running",
    "idle",
    "waiting",
    "paused",
    "stopping",
    "completed",
    "failed",
    "stopped",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionRow:
    """One session: what it is, how it stands, what it used."""

    id: str
    status: str
    """One of `STATUSES`; a session that waits for a person to go on is `paused`."""
    driven: bool | None
    """Whether a living process drives it; None if none has to."""
    silence: str | None
    """The process that should run it, and has given no sign for long; None if there is none."""
    agent: str
    provider: str
    model: str
    goal: str | None
    parameters: Mapping[str, JsonValue]
    open: bool
    labels: Mapping[str, str]
    created_at: datetime
    started_at: datetime | None
    updated_at: datetime
    wait_kind: str | None
    wait_cause: Mapping[str, object] | None
    """Why it waits, as a code with its parameters."""
    deadline_at: datetime | None
    """When its wait ends by itself."""
    version: int
    unread: int
    """Messages in its inbox that it has not read."""
    turns: int
    tool_calls: int
    tokens: Tokens
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
    parent: str | None
    """The id of the session that asked for it."""
    root: str
    """The id of the topmost session of its tree."""
    forked_from: str | None
    forked_at: int | None
    """The last version that it shares with the session it was forked from."""
    inherited_turns: int
    inherited_cost: Decimal
    """What the shared past used; none of it was spent here."""


_SAME = (
    *("id", "agent", "provider", "model", "goal", "parameters", "open", "labels"),
    *("updated_at", "created_at"),
    *("started_at", "wait_kind", "deadline_at", "version", "unread", "turns", "tool_calls"),
    *("tokens", "unpriced", "result", "partial", "error", "error_kind", "stopped_by"),
    *("recoverable", "takeovers", "lost_attempts", "in_doubt", "inherited_turns"),
)


async def rows_of(log: OpenLog, sessions: Sequence[model.SessionReadModel]) -> list[SessionRow]:
    """Return *sessions* with the processes that run them."""
    now = log.clock.now()
    owed = [each.stream for each in sessions if each.status in model.DRIVEN]
    owners = await owners_of(log.store, log.board, owed, now)
    silent = {
        each: await silent_owner(log.store, log.board, each, now)
        for each in owed
        if each not in owners
    }
    return [
        _row(each, each.stream in owners if each.stream in owed else None, silent.get(each.stream))
        for each in sessions
    ]


def _row(row: model.SessionReadModel, driven: bool | None, silence: str | None) -> SessionRow:  # noqa: FBT001 - one of the row's fields
    return SessionRow(
        **{name: getattr(row, name) for name in _SAME},
        status=row.shown_status,
        driven=driven,
        silence=silence,
        wait_cause=json.loads(row.wait_cause) if row.wait_cause else None,
        cost=row.usd,
        assumed_cost=Decimal(row.assumed_cost),
        estimated_cost=Decimal(row.estimated_cost),
        parent=shown(row.child_of) if row.child_of else None,
        root=shown(row.root) if row.root else row.id,
        forked_from=shown(row.parent) if row.parent else None,
        forked_at=row.parent_version if row.parent else None,
        inherited_cost=Decimal(row.inherited_cost),
    )
