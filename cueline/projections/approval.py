"""The read model `approvals`: what people were asked, and what they said."""

from dataclasses import dataclass
from datetime import datetime
from typing import ClassVar

from sqlite_utils import Database

from cueline.events.store import from_us
from cueline.projections.row import Names, select
from cueline.projections.session import TERMINAL


@dataclass(frozen=True, slots=True)
class Approval:
    """One question about exactly one effect."""

    TABLE: ClassVar[str] = "approvals"
    KEY: ClassVar[Names] = ("stream",)
    INDEXES: ClassVar[tuple[Names, ...]] = (("id",), ("status", "deadline_us"), ("session",))

    stream: str
    id: str
    """What a user sees, and what a decision names."""
    session: str
    """The session's stream."""
    effect: str
    status: str
    """`pending`, `granted`, `denied`, `expired` or `superseded`."""
    question: str
    tool: str
    arguments_json: str
    summary: str
    opened_json: str
    """The question as it was recorded, without the preview."""
    rule: str
    digest: str
    """Of exactly what will run (I9)."""
    opened_us: int
    deadline_us: int
    preview: str = ""
    """What it would change, as a unified diff."""
    usd: str = ""
    """What it is estimated to cost, in US dollars."""
    votes_needed: int = 1
    votes: int = 0
    by: str = ""
    note: str = ""
    edit_json: str | None = None
    """The arguments with which it may run, where they were changed."""
    given: str = ""
    """`grant` or `deny`, while that waits in the inbox and nobody has read it."""
    given_by: str = ""
    auto_us: int | None = None
    """When it is granted if nobody has denied it."""
    resolution: str = ""
    """What was said of a call in doubt: `happened`, `run_again` or `do_not_run`."""

    @property
    def deadline_at(self) -> datetime:
        """When it expires."""
        return from_us(self.deadline_us)

    @property
    def auto_at(self) -> datetime | None:
        """When it is granted if nobody has denied it."""
        return None if self.auto_us is None else from_us(self.auto_us)


def pending_approvals(db: Database) -> list[Approval]:
    """Return the questions that wait for a person, the most urgent first.

    Not those of sessions that ended: one that crashed while it asked does not know what it asked.
    """
    over = f"SELECT stream FROM sessions WHERE status IN {TERMINAL}"  # noqa: S608 - words of ours
    where = f"WHERE status = 'pending' AND session NOT IN ({over})"
    return select(db, Approval, f"{where} ORDER BY coalesce(auto_us, deadline_us), stream")
