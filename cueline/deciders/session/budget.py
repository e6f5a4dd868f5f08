"""The session's part of the budget rules (I8).

A model call is reserved before it starts and closed afterwards: settled at its
cost, or at the whole reservation if the cost is unknown, or released if it never
started. The session neither waits nor ends before all are closed.
"""

from msgspec.structs import replace

from cueline.deciders.session.limit_state import Bill, BudgetAccount
from cueline.deciders.session.state import SessionState
from cueline.deciders.session.turn import BudgetWait, ModelCall
from cueline.events.budget import Allowance
from cueline.events.codes import NO_OLD_MESSAGES
from cueline.events.message import Usage
from cueline.events.session import (
    ModelFailed,
    ModelReplied,
    ReservationClosed,
)
from cueline.events.stream import sibling

BUSY_SECONDS = 60.0
"""The seconds after which a call without budget requests budget again without an offer."""
_UNBILLED = frozenset(
    {
        *("rate_limited", "overloaded", "invalid_request", "context_too_long", "auth", "config"),
        NO_OLD_MESSAGES,
    }
)
"""The codes of failures before the vendor began to work; the failed attempt costs nothing."""


def path_of(state: SessionState) -> tuple[Allowance, ...]:
    """Return the limits of the session and of its ancestors."""
    assert state.setup is not None, "a session that asks was started"
    limits = state.limit_state.limits
    own = Allowance(session=state.stream, max_tokens=limits.max_tokens, max_cost=limits.max_cost)
    return (own, *state.setup.family.allowances)


def budget_of(state: SessionState) -> str:
    """Return the budget stream of the session's tree."""
    assert state.setup is not None, "a session that asks was started"
    return sibling(state.setup.family.root or state.stream, "budget")


def due_closings(state: SessionState) -> tuple[Bill, ...]:
    """Return the reservations that the ledger has to close now, also of unstarted calls."""
    bills, model = state.account.bills, state.turn.model
    barred = bool(state.hold or state.stop)
    if model is None or model.phase != "requested" or not barred or not state.limited:
        return bills
    return (*bills, Bill(model.effect, model.attempt, started=False))


def account_after_call(state: SessionState, outcome: ModelReplied | ModelFailed) -> BudgetAccount:
    """Return the budget account after a model call ended."""
    model = state.turn.model
    if model is None or not model.granted:
        return state.account
    bill = Bill(outcome.effect, outcome.attempt, usage=known_usage(outcome), cost=outcome.cost)
    return with_bill(state.account, bill)


def known_usage(outcome: ModelReplied | ModelFailed) -> Usage | None:
    """Return the usage of a model call; None if it is unknown."""
    if isinstance(outcome, ModelReplied):
        costs = outcome.usage.total or (outcome.cost is not None and outcome.cost.usd)
        return outcome.usage if costs else None
    return Usage() if outcome.usage is None and outcome.kind in _UNBILLED else outcome.usage


def account_of_lost_call(state: SessionState) -> BudgetAccount:
    """Return the budget account after a model call, which may be billed, was lost with its host."""
    model = state.turn.model
    if model is None or model.phase != "started" or not model.granted:
        return state.account
    return with_bill(state.account, Bill(model.effect, model.attempt))


def account_to_release(state: SessionState) -> BudgetAccount:
    """Return the budget account of a session that continues, with its pending releases.

    Without these releases, a later release could take away a new reservation.
    """
    return BudgetAccount(due_closings(state))


def account_of_unstarted(state: SessionState) -> BudgetAccount:
    """Return the budget account if a call with a possible reservation has to wait."""
    model = state.turn.model
    if model is None or model.phase != "requested" or not state.limited:
        return state.account
    return with_bill(state.account, Bill(model.effect, model.attempt, started=False))


def with_bill(account: BudgetAccount, bill: Bill) -> BudgetAccount:
    """Return *account* with *bill*."""
    return BudgetAccount((*account.bills, bill))


def reservation_closed(state: SessionState, event: ReservationClosed) -> SessionState:
    """Return *state* without the closed bill; an unstarted call may be requested again."""
    bills = tuple([b for b in state.account.bills if not _is_of(event, b)])
    state = replace(state, account=BudgetAccount(bills))
    if event.outcome == "estimated":
        state = replace(state, used=replace(state.used, usd=state.used.usd + event.usd))
    if event.shares:
        limit_state = replace(state.limit_state, shares=tuple(sorted(event.shares.items())))
        state = replace(state, limit_state=limit_state)
    model = state.turn.model
    if model is not None and model.phase == "requested" and _is_of(event, model):
        again = replace(model, phase="retry", room=None)
        return replace(state, turn=replace(state.turn, model=again))
    return state


def closes(state: SessionState, event: ReservationClosed) -> bool:
    """Whether *event* closes an open reservation or bill."""
    model = state.turn.model
    asked = model is not None and model.phase == "requested" and _is_of(event, model)
    return asked or any(_is_of(event, bill) for bill in state.account.bills)


def _is_of(event: ReservationClosed, call: Bill | ModelCall) -> bool:
    return (event.effect, event.attempt) == (call.effect, call.attempt)


def with_budget_wait(state: SessionState, room: BudgetWait) -> SessionState:
    """Return *state* with a model call that waits for budget."""
    model = state.turn.model
    if model is None or model.phase != "requested":
        return state
    return replace(state, turn=replace(state.turn, model=replace(model, room=room)))


def end_budget_wait(state: SessionState) -> SessionState:
    """Return *state* with a model call that requests budget again."""
    model = state.turn.model
    if model is None or model.room is None:
        return state
    return replace(state, turn=replace(state.turn, model=replace(model, room=None)))
