"""Whether a call fits the budget, and which waiting sessions fit when budget is freed."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Literal

from msgspec import Struct

from cueline.deciders.budget.state import NO_COST, Amount, BudgetState
from cueline.events.budget import BudgetOffered, LimitName
from cueline.events.cause import Cause

_NONE: Mapping[str, Amount] = MappingProxyType({})


class Shortage(Struct, frozen=True):
    """Why a call does not fit."""

    answer: Literal["busy", "exhausted"]
    limit: LimitName
    whose: str


def shortage(
    state: BudgetState, session: str, amount: Amount, promised: Mapping[str, Amount] = _NONE
) -> Shortage | None:
    """Return why a call of *session* may not cost *amount*; None if it may.

    *promised* holds by node what other sessions are about to reserve.
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
    """Return offers to the waiting sessions that fit now and have no offer yet."""
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
    """Return by limit the largest spent share on the path to the root."""
    found: dict[str, float] = {}
    for _, node in state.path(session):
        for limit, most in node.limits.items():
            share = round(float(node.settled.of(limit) / most), 4) if most else 1.0
            found[limit] = max(share, found.get(limit, 0.0))
    return found


def cause_of(state: BudgetState, session: str, amount: Amount, short: Shortage) -> Cause:
    """Return why a call of *session* waits."""
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
