"""The read model `approvals`: questions to people, and their answers."""

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
    """The id for users, which a decision names."""
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
    """The question as recorded, without the preview."""
    rule: str
    digest: str
    """The digest of exactly what will run (I9)."""
    opened_us: int
    deadline_us: int
    preview: str = ""
    """The previewed change, as a unified diff."""
    usd: str = ""
    """The estimated cost, in US dollars."""
    votes_needed: int = 1
    votes: int = 0
    by: str = ""
    note: str = ""
    edit_json: str | None = None
    """The edited arguments."""
    given: str = ""
    """`grant` or `deny`, while the decision is unread in the inbox."""
    given_by: str = ""
    auto_us: int | None = None
    """When it is granted automatically, unless denied before."""
    resolution: str = ""
    """The resolution of a call in doubt: `happened`, `run_again` or `do_not_run`."""

    @property
    def deadline_at(self) -> datetime:
        """When it expires."""
        return from_us(self.deadline_us)

    @property
    def auto_at(self) -> datetime | None:
        """When it is granted automatically, unless denied before."""
        return None if self.auto_us is None else from_us(self.auto_us)


def pending_approvals(db: Database) -> list[Approval]:
    """Return the open approvals, most urgent first.

    Without those of ended sessions: a session that crashed while it asked does not close them.
    """
    over = f"SELECT stream FROM sessions WHERE status IN {TERMINAL}"  # noqa: S608 - constants
    where = f"WHERE status = 'pending' AND session NOT IN ({over})"
    return select(db, Approval, f"{where} ORDER BY coalesce(auto_us, deadline_us), stream")
