"""Whether there is room for a call, and who is told when some is made."""

from collections.abc import Mapping
from decimal import Decimal
from types import MappingProxyType
from typing import Literal

from msgspec import Struct

from cueline.deciders.budget.state import NO_COST, Amount, BudgetState
from cueline.events.budget import LimitName, RoomOffered

_NONE: Mapping[str, Amount] = MappingProxyType({})


class Shortage(Struct, frozen=True):
    """Why there is no room."""

    answer: Literal["busy", "exhausted"]
    limit: LimitName
    whose: str


def shortage(
    state: BudgetState, session: str, amount: Amount, promised: Mapping[str, Amount] = _NONE
) -> Shortage | None:
    """Say why a call of *session* may not cost *amount*; None when it may.

    *promised* is what others are about to take, by node.
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


def offers(state: BudgetState) -> list[RoomOffered]:
    """Name those in line whom there is room for, and who were not told so."""
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
    return [RoomOffered(sessions=tuple(told))] if told else []


def shares(state: BudgetState, session: str) -> dict[str, float]:
    """Return by limit the share that is spent, of the fullest on the way to the root."""
    found: dict[str, float] = {}
    for _, node in state.path(session):
        for limit, most in node.limits.items():
            share = round(float(node.settled.of(limit) / most), 4) if most else 1.0
            found[limit] = max(share, found.get(limit, 0.0))
    return found


def told_of(state: BudgetState, session: str, amount: Amount, short: Shortage) -> str:
    """Say for people why a call of *session* waits."""
    node = state.nodes[short.whose]
    need, most = _said(short.limit, amount), _said(short.limit, node.limits[short.limit])
    whose = "" if short.whose == session else f" of {short.whose.partition('/')[2]}"
    spent = _said(short.limit, node.settled)
    if short.answer == "exhausted":
        left = f"{spent} spent, the next call may take {need}"
        return f"not enough left: {short.limit} {most}{whose}, {left}"
    held = _said(short.limit, node.reserved)
    return f"busy: {short.limit} {most}{whose}, {spent} is spent and {held} is held for others"


def _said(limit: LimitName, amount: Amount | Decimal) -> str:
    number = amount.of(limit) if isinstance(amount, Amount) else amount
    return f"{int(number):,} tokens" if limit == "max_tokens" else f"{number.normalize():f} USD"
