"""The commands of a budget; see the rules in `cueline.deciders.budget`."""

from collections.abc import Iterable, Mapping, Sequence
from decimal import Decimal
from types import MappingProxyType
from typing import Literal, assert_never

from msgspec import Struct, field

from cueline.deciders.budget.evolve import (
    NO_COST,
    NOTHING,
    Amount,
    BudgetState,
    Held,
    ModelCallName,
    Node,
    Outcome,
    RefusedCall,
    evolve,
    limits_of,
)
from cueline.events.budget import (
    Allowance,
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
from cueline.events.codes import Cause

_NONE: Mapping[str, Amount] = MappingProxyType({})


class Shortage(Struct, frozen=True):
    """The reason why a call does not fit the budget."""

    answer: Literal["busy", "exhausted"]
    limit: LimitName
    whose: str


def shortage(
    state: BudgetState, session: str, amount: Amount, promised: Mapping[str, Amount] = _NONE
) -> Shortage | None:
    """Return why a call of *session* may not cost *amount*; None if the amount fits.

    *promised* contains the amounts that other sessions are about to reserve, by node.
    """
    busy = None
    for name, node in state.path(session):
        held = node.reserved + promised.get(name, NO_COST)
        for limit, most in node.limits.items():
            spent = node.settled.of(limit) + amount.of(limit)
            if spent > most:
                return Shortage("exhausted", limit, name)
            if busy is None and spent + held.of(limit) > most:
                busy = Shortage("busy", limit, name)
    return busy


def sessions_to_offer(state: BudgetState) -> list[BudgetOffered]:
    """Return the offers to waiting sessions whose calls fit now and that have no offer yet."""
    promised: dict[str, Amount] = {}
    told = []
    for session in state.queue:
        wanted = state.nodes[session].wanted
        if wanted is None or shortage(state, session, wanted.amount, promised) is not None:
            continue
        for name, _ in state.path(session):
            promised[name] = promised.get(name, NO_COST) + wanted.amount
        if not wanted.told:
            told.append(session)
    return [BudgetOffered(sessions=tuple(told))] if told else []


def shares(state: BudgetState, session: str) -> dict[str, float]:
    """Return the largest spent share of each limit on the path from *session* to the root."""
    found: dict[str, float] = {}
    for _, node in state.path(session):
        for limit, most in node.limits.items():
            share = round(float(node.settled.of(limit) / most), 4) if most else 1.0
            found[limit] = max(share, found.get(limit, 0.0))
    return found


def cause_of(state: BudgetState, session: str, amount: Amount, short: Shortage) -> Cause:
    """Return the cause of the wait of a call of *session*, from the shortage *short*."""
    node, limit = state.nodes[short.whose], short.limit
    return Cause(
        code="budget_exhausted" if short.answer == "exhausted" else "budget_busy",
        limit=limit,
        of=node.limits[limit],
        whose="" if short.whose == session else short.whose,
        spent=node.settled.of(limit),
        held=node.reserved.of(limit),
        need=amount.of(limit),
    )


WARNED_AT = Decimal("0.8")
"""The share of a limit at which people are warned."""

Path = tuple[Allowance, ...]
"""The session and its ancestors with limits, up to the root."""


class Reserve(Struct, frozen=True):
    """The command to reserve *amount*, the highest cost of a model call, before the call starts."""

    call: ModelCallName
    epoch: int
    """The epoch of the session's owner; a former owner is refused."""
    path: Path
    amount: Amount


class Settle(Struct, frozen=True):
    """The command to settle a call that has ended; *amount* is None if the cost is unknown."""

    call: ModelCallName
    epoch: int
    path: Path
    amount: Amount | None


class Release(Struct, frozen=True):
    """The command to release the reservation of a call that will never start."""

    call: ModelCallName
    epoch: int
    path: Path


class Raise(Struct, frozen=True):
    """The command of a person to raise limits of a session; None keeps a limit."""

    session: str
    path: Path
    max_tokens: int | None
    max_cost: Decimal | None
    message: str
    """The inbox message of the request; a repeat counts once."""


BudgetCommand = Reserve | Settle | Release | Raise


class ReserveAnswer(Struct, frozen=True):
    """The answer to a reservation request."""

    verdict: Literal["granted", "busy", "exhausted", "closed"]
    """The decision; `closed`: this attempt is over, and another attempt may start."""
    cause: Cause | None = None
    """The cause of the verdict `busy` or `exhausted`; else None."""


class Closing(Struct, frozen=True):
    """How a call was closed."""

    outcome: Outcome
    amount: Amount = NO_COST
    shares: dict[str, float] = field(default_factory=dict)
    """The spent share of each limit on the path to the root."""


def decide(command: BudgetCommand, state: BudgetState) -> Sequence[BudgetEvent]:
    """Return the events of *command*; `[]` if the command changes nothing or is a repeat."""
    opened = _opening(command.path, state)
    state = _after(state, opened)
    match command:
        case Reserve():
            facts = _reserve(command, state)
        case Settle() | Release():
            facts = _close(command, state)
        case Raise():
            facts = _raise(command, state)
        case _:
            assert_never(command)
    return [*opened, *facts] if facts else []


def fencing_epoch(command: BudgetCommand, state: BudgetState) -> int | None:
    """Return the newer epoch that fences *command*; None if the command's epoch is current."""
    if isinstance(command, Raise):
        return None
    node = state.nodes.get(command.call.session)
    return node.epoch if node is not None and command.epoch < node.epoch else None


def answer(command: Reserve, state: BudgetState) -> ReserveAnswer:
    """Return the answer to *command*, which was decided in *state*."""
    node = state.nodes[command.call.session]
    if node.held is not None and node.held.call == command.call:
        return ReserveAnswer("granted")
    if node.wanted is not None and node.wanted.call == command.call:
        short = shortage(state, command.call.session, command.amount)
        assert short is not None, "who waits is told of room when it is made"
        cause = cause_of(state, command.call.session, command.amount, short)
        return ReserveAnswer(node.wanted.answer, cause)
    return ReserveAnswer("closed")


def closing_of(call: ModelCallName, state: BudgetState) -> Closing:
    """Return how *call* was closed."""
    closed = state.nodes[call.session].closed
    spent = shares(state, call.session)
    if closed is None or closed.call != call:
        return Closing("released", shares=spent)
    return Closing(closed.outcome, closed.amount, spent)


def _opening(path: Path, state: BudgetState) -> list[BudgetEvent]:
    above = (*(each.session for each in path[1:]), None)
    pairs = [(p, a) for p, a in zip(path, above, strict=True) if p.session not in state.nodes]
    return [
        BudgetOpened(
            session=each.session, parent=parent, max_tokens=each.max_tokens, max_cost=each.max_cost
        )
        for each, parent in reversed(pairs)
    ]


def _after(state: BudgetState, facts: Iterable[BudgetEvent]) -> BudgetState:
    for fact in facts:
        state = evolve(state, fact)
    return state


def _reserve(command: Reserve, state: BudgetState) -> list[BudgetEvent]:
    call, node = command.call, state.nodes[command.call.session]
    if node.held is not None and node.held.call == call:
        # Recorded again for a new owner, to fence the former one, with the amount granted before: a
        # higher estimate by the new owner gets no more budget.
        said = _reserved(command, node.held.amount)
        return [said] if command.epoch > node.epoch else []
    if _is_over(node, call):
        return []
    lost: list[BudgetEvent] = []
    if node.held is not None:
        # The session continued without closing the call, which may have cost all its reservation.
        lost = _settled(node.held.call, command.epoch, None, state)
        state = _after(state, lost)
    short = shortage(state, call.session, command.amount)
    if short is None:
        facts = [*lost, _reserved(command, command.amount)]
        # This reservation may take the budget that was offered to others; smaller requests may
        # still fit.
        return _offered(facts, state, facts[-1]) if lost or _offers_after(state) else facts
    wanted = node.wanted
    again = RefusedCall(call, command.amount, short.answer)
    if wanted == again and command.epoch == node.epoch:
        return []
    refused = BudgetRefused(
        session=call.session,
        effect=call.effect,
        attempt=call.attempt,
        epoch=command.epoch,
        answer=short.answer,
        limit=short.limit,
        whose=short.whose,
        tokens=command.amount.tokens,
        usd=command.amount.usd,
    )
    was_told = wanted is not None and wanted.told
    return _offered([*lost, refused], state, refused) if was_told or lost else [refused]


def _offers_after(state: BudgetState) -> bool:
    waiting = (state.nodes[session].wanted for session in state.queue)
    return any(wanted is not None and wanted.told for wanted in waiting)


def _is_over(node: Node, call: ModelCallName) -> bool:
    last = [each.call.place for each in (node.closed, node.held) if each is not None]
    return call.place <= max(last, default=(-1, -1))


def _reserved(command: Reserve, amount: Amount) -> CostReserved:
    return CostReserved(
        session=command.call.session,
        effect=command.call.effect,
        attempt=command.call.attempt,
        epoch=command.epoch,
        tokens=amount.tokens,
        usd=amount.usd,
    )


def _close(command: Settle | Release, state: BudgetState) -> list[BudgetEvent]:
    call, node = command.call, state.nodes[command.call.session]
    held = node.held is not None and node.held.call == call
    if not held and _is_over(node, call):
        return []
    amount = command.amount if isinstance(command, Settle) else None
    if isinstance(command, Settle) and (held or amount is not None):
        facts = _settled(call, command.epoch, amount, state)
        return _offered(facts, state, *facts)
    released = CostReleased(
        session=call.session, effect=call.effect, attempt=call.attempt, epoch=command.epoch
    )
    return _offered([released], state, released)


def _settled(
    call: ModelCallName, epoch: int, amount: Amount | None, state: BudgetState
) -> list[BudgetEvent]:
    """Return the events that settle a call and warn of nearly spent limits."""
    held = state.nodes[call.session].held
    reserved = _amount_of(held, call)
    spent = reserved if amount is None else amount
    settled = CostSettled(
        session=call.session,
        effect=call.effect,
        attempt=call.attempt,
        epoch=epoch,
        tokens=spent.tokens,
        usd=spent.usd,
        estimated=amount is None,
        tokens_over=max(0, spent.tokens - reserved.tokens),
        usd_over=max(NOTHING, spent.usd - reserved.usd),
    )
    return [settled, *_warnings(call.session, evolve(state, settled))]


def _amount_of(held: Held | None, call: ModelCallName) -> Amount:
    return held.amount if held is not None and held.call == call else NO_COST


def _warnings(session: str, state: BudgetState) -> list[BudgetEvent]:
    return [
        BudgetWarned(session=name, limit=limit, spent=node.settled.of(limit), of=most)
        for name, node in state.path(session)
        for limit, most in node.limits.items()
        if limit not in node.warned and node.settled.of(limit) >= WARNED_AT * most
    ]


def _offered(
    facts: list[BudgetEvent], state: BudgetState, *changes: BudgetEvent
) -> list[BudgetEvent]:
    """Return *facts* and the offers to sessions whose calls fit after *facts*."""
    return [*facts, *sessions_to_offer(_after(state, changes))]


def _raise(command: Raise, state: BudgetState) -> list[BudgetEvent]:
    node = state.nodes[command.session]
    if command.message in node.raised:
        return []
    asked = limits_of(command.max_tokens, command.max_cost)
    higher = {name for name, most in asked.items() if most > node.limits.get(name, most)}
    if not higher:
        return []
    raised = BudgetRaised(
        session=command.session,
        max_tokens=command.max_tokens if "max_tokens" in higher else None,
        max_cost=command.max_cost if "max_cost" in higher else None,
        message=command.message,
    )
    return _offered([raised], state, raised)
