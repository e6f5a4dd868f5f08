"""The state of a budget, and the state after each event; `evolve` never fails."""

from collections.abc import Callable, Iterator, Mapping
from decimal import Decimal
from typing import Literal, assert_never

from msgspec import Struct, field
from msgspec.structs import replace

from cueline.events.budget import (
    BudgetEvent,
    BudgetOffered,
    BudgetOpened,
    BudgetRaised,
    BudgetRefused,
    BudgetWarned,
    CostReleased,
    CostReserved,
    CostSettled,
    LimitName,
)

NOTHING = Decimal(0)


class Amount(Struct, frozen=True):
    """An amount of tokens and US dollars."""

    tokens: int = 0
    usd: Decimal = NOTHING

    def __add__(self, other: "Amount") -> "Amount":
        return Amount(self.tokens + other.tokens, self.usd + other.usd)

    def __sub__(self, other: "Amount") -> "Amount":
        return Amount(self.tokens - other.tokens, self.usd - other.usd)

    def of(self, limit: LimitName) -> Decimal:
        """Return the part of the amount that *limit* counts: tokens or US dollars."""
        return Decimal(self.tokens) if limit == "max_tokens" else self.usd


NO_COST = Amount()


class ModelCallName(Struct, frozen=True):
    """The name of one attempt of a model call: session, effect and attempt."""

    session: str
    effect: str
    attempt: int

    @property
    def place(self) -> tuple[int, int]:
        """The turn and the attempt, which grow from call to call of a session."""
        return int(self.effect.partition(".")[0]), self.attempt

    def __str__(self) -> str:
        return f"{self.session}/{self.effect}/{self.attempt}"


class Held(Struct, frozen=True):
    """The open reservation of a session's call."""

    call: ModelCallName
    amount: Amount


Outcome = Literal["settled", "estimated", "released"]


class Closed(Struct, frozen=True):
    """The session's last settled or released call, which bars all earlier calls."""

    call: ModelCallName
    outcome: Outcome
    amount: Amount


class RefusedCall(Struct, frozen=True):
    """A call whose reservation was refused, and which waits for budget."""

    call: ModelCallName
    amount: Amount
    answer: Literal["busy", "exhausted"]
    told: bool = False
    """Whether the session got an offer and has not requested budget since."""


class Node(Struct, frozen=True):
    """One session in the budget of its tree."""

    parent: str | None = None
    limits: Mapping[LimitName, Decimal] = field(default_factory=dict)
    epoch: int = 0
    """The highest epoch of an owner of the session."""
    own: Amount = NO_COST
    """The amount that the session itself spent."""
    settled: Amount = NO_COST
    """The amount that the session and its descendants spent."""
    reserved: Amount = NO_COST
    """The amount reserved for the session and its descendants."""
    held: Held | None = None
    closed: Closed | None = None
    wanted: RefusedCall | None = None
    warned: frozenset[LimitName] = frozenset()
    raised: frozenset[str] = frozenset()
    """The messages that raised the session's limits."""


class BudgetState(Struct, frozen=True):
    """The folded state of one budget."""

    nodes: Mapping[str, Node] = field(default_factory=dict)
    queue: tuple[str, ...] = ()
    """The refused sessions, oldest first."""

    def path(self, session: str) -> Iterator[tuple[str, Node]]:
        """Yield *session* and its ancestors, up to the root."""
        name: str | None = session
        while name is not None and name in self.nodes:
            yield name, self.nodes[name]
            name = self.nodes[name].parent


Change = Callable[[Node], Node]


def evolve(state: BudgetState, event: BudgetEvent) -> BudgetState:
    """Return the state after *event*."""
    match event:
        case BudgetOpened():
            return _opened(state, event)
        case CostReserved():
            return _reserved(state, event)
        case CostSettled() | CostReleased():
            return _closed(state, event)
        case BudgetRefused():
            return _refused(state, event)
        case BudgetOffered(sessions=sessions):
            for session in sessions:
                state = _with(state, session, _with_warning)
            return state
        case BudgetWarned(session=session, limit=limit):
            return _with(state, session, lambda n: replace(n, warned=n.warned | {limit}))
        case BudgetRaised(session=session):
            return _with(state, session, lambda n: _raised(n, event))
        case _:
            assert_never(event)


def limits_of(max_tokens: int | None, max_cost: Decimal | None) -> dict[LimitName, Decimal]:
    """Return the limits that are not None, by name."""
    limits: dict[LimitName, Decimal] = {}
    if max_tokens is not None:
        limits["max_tokens"] = Decimal(max_tokens)
    if max_cost is not None:
        limits["max_cost"] = max_cost
    return limits


def call_of(event: CostReserved | CostSettled | CostReleased | BudgetRefused) -> ModelCallName:
    """Return the name of the call of *event*."""
    return ModelCallName(event.session, event.effect, event.attempt)


def _with(state: BudgetState, session: str, change: Change) -> BudgetState:
    """Return *state* with *change* applied to the node of *session*."""
    if session not in state.nodes:
        return state
    return replace(state, nodes={**state.nodes, session: change(state.nodes[session])})


def _opened(state: BudgetState, event: BudgetOpened) -> BudgetState:
    if event.session in state.nodes:
        return state
    node = Node(event.parent, limits_of(event.max_tokens, event.max_cost))
    return replace(state, nodes={**state.nodes, event.session: node})


def _reserved(state: BudgetState, event: CostReserved) -> BudgetState:
    """Return *state* with the reserved amount; a repeat by a later owner reserves nothing more."""
    call, amount = call_of(event), Amount(event.tokens, event.usd)
    node = state.nodes.get(event.session, Node())
    before = node.held.amount if node.held is not None else NO_COST
    state = _along(state, event.session, reserved=amount - before)
    held = Held(call, amount)
    seen = max(node.epoch, event.epoch)
    state = _with(state, event.session, lambda n: replace(n, held=held, wanted=None, epoch=seen))
    return _out_of_line(state, event.session)


def _closed(state: BudgetState, event: CostSettled | CostReleased) -> BudgetState:
    node = state.nodes.get(event.session, Node())
    call = call_of(event)
    spent, outcome = _spent(event)
    freed = node.held.amount if node.held is not None and node.held.call == call else NO_COST
    state = _along(state, event.session, reserved=NO_COST - freed, settled=spent)
    kept = None if node.held is None or node.held.call == call else node.held

    def close(node: Node) -> Node:
        return replace(
            node,
            own=node.own + spent,
            held=kept,
            closed=Closed(call, outcome, spent),
            wanted=None,
            epoch=max(node.epoch, event.epoch),
        )

    return _out_of_line(_with(state, event.session, close), event.session)


def _spent(event: CostSettled | CostReleased) -> tuple[Amount, Outcome]:
    if isinstance(event, CostReleased):
        return NO_COST, "released"
    return Amount(event.tokens, event.usd), "estimated" if event.estimated else "settled"


def _refused(state: BudgetState, event: BudgetRefused) -> BudgetState:
    wanted = RefusedCall(call_of(event), Amount(event.tokens, event.usd), event.answer)

    def refuse(node: Node) -> Node:
        return replace(node, wanted=wanted, epoch=max(node.epoch, event.epoch))

    queue = state.queue if event.session in state.queue else (*state.queue, event.session)
    return replace(_with(state, event.session, refuse), queue=queue)


def _with_warning(node: Node) -> Node:
    if node.wanted is None:
        return node
    wanted = RefusedCall(node.wanted.call, node.wanted.amount, node.wanted.answer, told=True)
    return replace(node, wanted=wanted)


def _raised(node: Node, event: BudgetRaised) -> Node:
    higher = limits_of(event.max_tokens, event.max_cost)
    return replace(
        node,
        limits={**node.limits, **higher},
        warned=node.warned - higher.keys(),
        raised=node.raised | {event.message},
    )


def _along(
    state: BudgetState, session: str, *, reserved: Amount, settled: Amount | None = None
) -> BudgetState:
    """Return *state* with the amounts added to the sums of *session* and its ancestors."""
    nodes = dict(state.nodes)
    for name, node in state.path(session):
        spent = node.settled if settled is None else node.settled + settled
        nodes[name] = replace(node, reserved=node.reserved + reserved, settled=spent)
    return replace(state, nodes=nodes)


def _out_of_line(state: BudgetState, session: str) -> BudgetState:
    if session not in state.queue:
        return state
    return replace(state, queue=tuple([each for each in state.queue if each != session]))
