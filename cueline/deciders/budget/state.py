"""What the rules of a budget remember: one small node a session, whatever it did before."""

from collections.abc import Iterator, Mapping
from decimal import Decimal
from typing import Literal

from msgspec import Struct, field

from cueline.events.budget import LimitName

NOTHING = Decimal(0)


class Amount(Struct, frozen=True):
    """Tokens, and US dollars."""

    tokens: int = 0
    usd: Decimal = NOTHING

    def __add__(self, other: "Amount") -> "Amount":
        return Amount(self.tokens + other.tokens, self.usd + other.usd)

    def __sub__(self, other: "Amount") -> "Amount":
        return Amount(self.tokens - other.tokens, self.usd - other.usd)

    def of(self, limit: LimitName) -> Decimal:
        """Return the part that *limit* counts."""
        return Decimal(self.tokens) if limit == "max_tokens" else self.usd


NO_COST = Amount()


class ModelCallName(Struct, frozen=True):
    """Which attempt at which model call of a session."""

    session: str
    effect: str
    attempt: int

    @property
    def place(self) -> tuple[int, int]:
        """Turn and attempt: a session's later call has a later place."""
        return int(self.effect.partition(".")[0]), self.attempt

    def __str__(self) -> str:
        return f"{self.session}/{self.effect}/{self.attempt}"


class Held(Struct, frozen=True):
    """What is reserved for the session's call."""

    call: ModelCallName
    amount: Amount


Outcome = Literal["settled", "estimated", "released"]


class Closed(Struct, frozen=True):
    """The session's last call that was settled or released; none before it comes back."""

    call: ModelCallName
    outcome: Outcome
    amount: Amount


class Wanted(Struct, frozen=True):
    """A call that was refused."""

    call: ModelCallName
    amount: Amount
    answer: Literal["busy", "exhausted"]
    told: bool = False
    """That there may be room, and it has not asked again yet."""


class Node(Struct, frozen=True):
    """One session in the budget."""

    parent: str | None = None
    limits: Mapping[LimitName, Decimal] = field(default_factory=dict)
    epoch: int = 0
    """The highest of its owners' that was seen."""
    own: Amount = NO_COST
    """What the session itself spent."""
    settled: Amount = NO_COST
    """What it and all its descendants spent."""
    reserved: Amount = NO_COST
    """What is held for it and all its descendants."""
    held: Held | None = None
    closed: Closed | None = None
    wanted: Wanted | None = None
    warned: frozenset[LimitName] = frozenset()
    raised: frozenset[str] = frozenset()
    """The messages that raised its limits."""


class BudgetState(Struct, frozen=True):
    """One budget, folded."""

    nodes: Mapping[str, Node] = field(default_factory=dict)
    queue: tuple[str, ...] = ()
    """The sessions that were refused, the oldest first."""

    def path(self, session: str) -> Iterator[tuple[str, Node]]:
        """Yield *session* and those above it, up to the root."""
        name: str | None = session
        while name is not None and name in self.nodes:
            yield name, self.nodes[name]
            name = self.nodes[name].parent
