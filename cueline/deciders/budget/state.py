"""The state of a budget: one small node for each session."""

from collections.abc import Iterator, Mapping
from decimal import Decimal
from typing import Literal

from msgspec import Struct, field

from cueline.events.budget import LimitName

NOTHING = Decimal(0)


class Amount(Struct, frozen=True):
    """Tokens and US dollars."""

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
    """One attempt at one model call of a session."""

    session: str
    effect: str
    attempt: int

    @property
    def place(self) -> tuple[int, int]:
        """Turn and attempt; they grow from call to call of a session."""
        return int(self.effect.partition(".")[0]), self.attempt

    def __str__(self) -> str:
        return f"{self.session}/{self.effect}/{self.attempt}"


class Held(Struct, frozen=True):
    """The reservation of the session's call."""

    call: ModelCallName
    amount: Amount


Outcome = Literal["settled", "estimated", "released"]


class Closed(Struct, frozen=True):
    """The session's last call that was settled or released; it bars all earlier ones."""

    call: ModelCallName
    outcome: Outcome
    amount: Amount


class RefusedCall(Struct, frozen=True):
    """A refused call."""

    call: ModelCallName
    amount: Amount
    answer: Literal["busy", "exhausted"]
    told: bool = False
    """The session was offered budget and has not asked again."""


class Node(Struct, frozen=True):
    """One session in the budget."""

    parent: str | None = None
    limits: Mapping[LimitName, Decimal] = field(default_factory=dict)
    epoch: int = 0
    """The highest epoch seen of its owners."""
    own: Amount = NO_COST
    """The amount that the session itself spent."""
    settled: Amount = NO_COST
    """The amount that it and its descendants spent."""
    reserved: Amount = NO_COST
    """The amount reserved for it and its descendants."""
    held: Held | None = None
    closed: Closed | None = None
    wanted: RefusedCall | None = None
    warned: frozenset[LimitName] = frozenset()
    raised: frozenset[str] = frozenset()
    """The messages that raised its limits."""


class BudgetState(Struct, frozen=True):
    """One budget, folded."""

    nodes: Mapping[str, Node] = field(default_factory=dict)
    queue: tuple[str, ...] = ()
    """The refused sessions, oldest first."""

    def path(self, session: str) -> Iterator[tuple[str, Node]]:
        """Yield *session* and its ancestors, up to the root."""
        name: str | None = session
        while name is not None and name in self.nodes:
            yield name, self.nodes[name]
            name = self.nodes[name].parent
