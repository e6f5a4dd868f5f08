"""What the rules of approval said of a call when it was requested, or edited."""

from decimal import Decimal
from operator import not_
from typing import Final

from pydantic import Field

from cueline.events.agent import Answer, Part

Demand = tuple[int, tuple[tuple[str, ...], ...], bool]
"""How many people have to allow a call, who of them may, and whether the requester may not."""


class Judgement(Part):
    """What the rules say of a call, and which of them."""

    answer: Answer
    rule: str
    """The rules that decided, by their names."""
    digest: str = Field(default="", exclude_if=not_)
    """Of exactly what would run (I9)."""
    problem: str = Field(default="", exclude_if=not_)
    """Why it cannot be run at all: what the model is told instead of a result."""
    usd: Decimal | None = Field(default=None, exclude_if=lambda usd: usd is None)
    """What the call is estimated to cost."""
    unpriced: str = Field(default="", exclude_if=not_)
    """Why nobody knows what it will cost, though its tool should."""
    votes: int = Field(default=1, exclude_if=lambda votes: votes == 1)
    may_grant: tuple[tuple[str, ...], ...] = Field(default=(), exclude_if=not_)
    exclude_requester: bool = Field(default=False, exclude_if=not_)

    @property
    def people_only(self) -> bool:
        """Whether it is for certain people, or several, and never granted automatically."""
        return self.votes > 1 or bool(self.may_grant) or self.exclude_requester

    @property
    def demand(self) -> Demand:
        """Which people have to allow it."""
        return self.votes, self.may_grant, self.exclude_requester


UNJUDGED: Final = Judgement(answer="ask", rule="")
"""Of a call that no rule has judged: it does not run unasked."""
