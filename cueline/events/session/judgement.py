"""The policy's judgement of a call when it was requested or edited."""

from decimal import Decimal
from operator import not_
from typing import Final

from pydantic import Field

from cueline.events.agent import Answer
from cueline.events.part import Part

Demand = tuple[int, tuple[tuple[str, ...], ...], bool]
"""How many people have to grant a call, which of them, and whether the requester may not."""


class Judgement(Part):
    """The policy's judgement of a call, and the rules behind it."""

    answer: Answer
    rule: str
    """The names of the rules that decided."""
    digest: str = Field(default="", exclude_if=not_)
    """The digest of exactly what would run (I9)."""
    problem: str = Field(default="", exclude_if=not_)
    """Why it cannot run: the text for the model instead of a result."""
    usd: Decimal | None = Field(default=None, exclude_if=lambda usd: usd is None)
    """The estimated cost of the call."""
    unpriced: str = Field(default="", exclude_if=not_)
    """Why the cost is unknown although the tool should estimate it."""
    votes: int = Field(default=1, exclude_if=lambda votes: votes == 1)
    may_grant: tuple[tuple[str, ...], ...] = Field(default=(), exclude_if=not_)
    exclude_requester: bool = Field(default=False, exclude_if=not_)

    @property
    def people_only(self) -> bool:
        """Whether it needs named approvers or several people; then no grant is automatic."""
        return self.votes > 1 or bool(self.may_grant) or self.exclude_requester

    @property
    def demand(self) -> Demand:
        """Which people have to grant it."""
        return self.votes, self.may_grant, self.exclude_requester


UNJUDGED: Final = Judgement(answer="ask", rule="")
"""For a call that was not judged: it does not run without an approval."""
