"""The read model `approvals`: questions to people, and their answers."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from functools import cache
from itertools import starmap
from sqlite3 import Connection
from typing import TYPE_CHECKING, Annotated, ClassVar

from cueline.events.status import Resolution
from cueline.events.store import to_us
from cueline.events.stream import shown
from cueline.projections.read_model import Id, Names, Read, Row, ask, matching, new_row, select
from cueline.projections.session import OVER

_GOES_ON = f"session NOT IN (SELECT stream FROM sessions WHERE status IN {OVER})"  # noqa: S608 - constants

if TYPE_CHECKING:  # a list that is up to date needs no facts
    from cueline.events.approval import ApprovalOpened


@dataclass(frozen=True, slots=True)
class Choice:
    """One answer to the question about a call in doubt."""

    resolution: Resolution
    then: str
    """The effect of the answer."""


@cache
def choices(question: str = "did_it_happen") -> tuple[Choice, ...]:
    """Return the possible answers to a question, beside yes and no."""
    from cueline.events.event_text import RESOLUTIONS  # noqa: PLC0415

    return tuple(starmap(Choice, RESOLUTIONS.items())) if question == "did_it_happen" else ()


def _rationale(opened: str) -> str:
    from cueline.events.approval import ApprovalOpened  # noqa: PLC0415
    from cueline.events.event_text import rationale_text  # noqa: PLC0415

    return rationale_text(ApprovalOpened.model_validate_json(opened))


def _requests(opened: str) -> tuple[Mapping[str, object], ...]:
    return tuple(json.loads(opened).get("requests", ()))


@dataclass(frozen=True, slots=True, kw_only=True)
class PendingRow:
    """One question about one call."""

    TABLE: ClassVar[str] = "approvals"

    id: str
    """The id, which a decision names."""
    session: Id
    effect: str
    question: str
    """`may_it_run`; for a call in doubt `did_it_happen`, for one that asks `what_to_answer`."""
    tool: str
    arguments: Mapping[str, object]
    summary: str
    digest: str
    """The digest of the exact call (I9)."""
    preview: str
    """The change of the call, as a unified diff."""
    rationale: Annotated[str, Read("opened_json", load=_rationale)]
    requests: Annotated[tuple[Mapping[str, object], ...], Read("opened_json", load=_requests)]
    """What the call asks for, if it asks: see `InputRequest`."""
    rule: str
    estimated_cost: Annotated[Decimal | None, Read("nullif(usd, '')", column="usd", kind=str)]
    """The estimated cost."""
    votes: int
    votes_needed: int = 1
    deadline_at: datetime
    auto_at: datetime | None
    """The time of the automatic grant, unless the approval is denied earlier."""
    given: Annotated[str | None, Read("nullif(given, '')", column="given", kind=str)]
    """`grant` or `deny`, while the decision is unread in the inbox."""
    given_by: Annotated[str | None, Read("nullif(given_by, '')", column="given_by", kind=str)]
    resolution: Annotated[str | None, Read("nullif(resolution, '')", column="resolution", kind=str)]
    """The resolution of a call in doubt that is unread in the inbox."""
    choices: Annotated[tuple[Choice, ...], Read("question", load=choices)]
    """The possible answers about a call in doubt."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Approval(PendingRow):
    """A question with the columns for cueline's own queries."""

    KEY: ClassVar[Names] = ("stream",)
    INDEXES: ClassVar[tuple[Names, ...]] = (("id",), ("status", "deadline_us"), ("session",))

    stream: str
    status: str
    """`pending`, `granted`, `denied`, `expired` or `superseded`."""
    opened_json: str
    """The question as recorded, without the preview."""
    opened_at: datetime
    by: str
    note: str
    edit_json: str | None
    """The edited arguments."""


def opened(stream: str, fact: "ApprovalOpened") -> Row:
    """Return the row of a new question."""
    same = ("session", "effect", "question", "tool", "summary", "rule", "digest", "preview")
    return new_row(
        Approval,
        **{name: getattr(fact, name) for name in same},
        stream=stream,
        id=shown(stream),
        status="pending",
        arguments_json=json.dumps(fact.arguments, ensure_ascii=False),
        opened_json=fact.model_dump_json(exclude={"preview"}),
        opened_us=to_us(fact.opened_at),
        deadline_us=to_us(fact.deadline_at),
        usd="" if fact.usd is None else str(fact.usd),
        votes_needed=fact.votes,
        auto_us=None if fact.auto_at is None else to_us(fact.auto_at),
    )


def pending_approvals(db: Connection, stream: str | None = None) -> list[PendingRow]:
    """Return the open approvals, of the session *stream* or of all, most urgent first.

    Approvals of ended sessions are left out: a session that crashed leaves them open.
    """
    where, values = matching([("status = ?", "pending"), ("session = ?", stream)])
    urgent = "ORDER BY coalesce(auto_us, deadline_us), stream"
    return select(db, PendingRow, f"{where} AND {_GOES_ON} {urgent}", values)


def oldest_question_us(db: Connection) -> int | None:
    """Return when the oldest open approval was opened; None: there is none."""
    sql = f"SELECT min(opened_us) FROM approvals WHERE status = 'pending' AND {_GOES_ON}"  # noqa: S608 - constants
    [(oldest,)] = ask(db, "approvals", sql)
    return oldest if oldest is None else int(oldest)
