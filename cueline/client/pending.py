"""What waits for a person's decision."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal

from cueline.client.reading import ReadModels
from cueline.events.approval import ApprovalOpened
from cueline.events.event_text import RESOLUTIONS, rationale_text
from cueline.events.inbox import Resolution
from cueline.events.stream import shown
from cueline.projections import approval as model


@dataclass(frozen=True, slots=True)
class Choice:
    """One answer to the question about a call in doubt."""

    resolution: Resolution
    then: str
    """What follows from it."""


CHOICES = tuple(Choice(resolution, then) for resolution, then in RESOLUTIONS.items())


@dataclass(frozen=True, slots=True, kw_only=True)
class PendingRow:
    """One question about one call."""

    id: str
    """What a decision names."""
    session: str
    effect: str
    question: str
    """`may_it_run`, or `did_it_happen` of a call in doubt."""
    tool: str
    arguments: Mapping[str, object]
    summary: str
    digest: str
    """Of exactly what will run (I9)."""
    preview: str
    """What it would change, as a unified diff."""
    rationale: str
    rule: str
    estimated_cost: Decimal | None
    """What the tool estimates that it costs."""
    votes: int
    votes_needed: int
    deadline_at: datetime
    auto_at: datetime | None
    """When it is granted if nobody has denied it."""
    given: str | None
    """`grant` or `deny`, while that waits in the inbox and nobody has read it."""
    given_by: str | None
    resolution: str | None
    """What was said of a call in doubt, and nobody has read."""
    choices: tuple[Choice, ...]
    """The answers that a call in doubt takes."""


_SAME = (
    *("id", "effect", "question", "tool", "summary", "digest", "preview", "rule"),
    *("votes", "votes_needed", "deadline_at", "auto_at"),
)


def rows_of_session(models: ReadModels, stream: str) -> tuple[PendingRow, ...]:
    """Return what of one session waits for a person."""
    return tuple(row_of(e) for e in model.pending_approvals(models.db) if e.session == stream)


def row_of(row: model.Approval) -> PendingRow:
    """Return a question as a person is asked."""
    return PendingRow(
        **{name: getattr(row, name) for name in _SAME},
        rationale=rationale_text(ApprovalOpened.model_validate_json(row.opened_json)),
        session=shown(row.session),
        arguments=json.loads(row.arguments_json),
        estimated_cost=Decimal(row.usd) if row.usd else None,
        given=row.given or None,
        given_by=row.given_by or None,
        resolution=row.resolution or None,
        choices=CHOICES if row.question == "did_it_happen" else (),
    )
