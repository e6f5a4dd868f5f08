"""What a session owes its budget, and what its children change (I8).

A model call is reserved before it is started, and closed after: settled at
what was used, or at all that was reserved when nobody knows, or released when
it was never started. The session neither rests nor ends before all are closed.
"""

from msgspec.structs import replace

from cueline.deciders.session.limit_state import Bill, BudgetAccount
from cueline.deciders.session.state import SessionState
from cueline.deciders.session.turn import BudgetWait, ModelCall
from cueline.events.budget import Allowance
from cueline.events.inbox import ChildAsked, ChildEnded
from cueline.events.message import Usage
from cueline.events.session import (
    ChildSettled,
    ChildSpawned,
    ModelFailed,
    ModelReplied,
    ReservationClosed,
)
from cueline.events.stream import sibling

BUSY_SECONDS = 60.0
"""After so long a call that found no room asks again, told or not."""
_UNBILLED = frozenset(
    {"rate_limited", "overloaded", "invalid_request", "context_too_long", "auth", "config"}
)
"""The vendor said no before it had begun: such an attempt costs nothing."""


def path_of(state: SessionState) -> tuple[Allowance, ...]:
    """Return the session's limits, and those of the sessions above it."""
    assert state.setup is not None, "a session that asks was started"
    limits = state.limit_state.limits
    own = Allowance(session=state.stream, max_tokens=limits.max_tokens, max_cost=limits.max_cost)
    return (own, *state.setup.family.allowances)


def budget_of(state: SessionState) -> str:
    """Return the stream of the budget of the session's tree."""
    assert state.setup is not None, "a session that asks was started"
    return sibling(state.setup.family.root or state.stream, "budget")


def due_closings(state: SessionState) -> tuple[Bill, ...]:
    """Return what the ledger has to close now, with what is asked for and will not begin."""
    bills, model = state.account.bills, state.turn.model
    barred = bool(state.hold or state.stop)
    if model is None or model.phase != "requested" or not barred or not state.limited:
        return bills
    return (*bills, Bill(model.effect, model.attempt, started=False))


def account_after_call(state: SessionState, outcome: ModelReplied | ModelFailed) -> BudgetAccount:
    """Return the account after a model call ended."""
    model = state.turn.model
    if model is None or not model.granted:
        return state.account
    bill = Bill(outcome.effect, outcome.attempt, usage=known_usage(outcome), cost=outcome.cost)
    return with_bill(state.account, bill)


def known_usage(outcome: ModelReplied | ModelFailed) -> Usage | None:
    """Return what was used, None where nobody knows: no reply comes of nothing."""
    if isinstance(outcome, ModelReplied):
        costs = outcome.usage.total or (outcome.cost is not None and outcome.cost.usd)
        return outcome.usage if costs else None
    return Usage() if outcome.usage is None and outcome.kind in _UNBILLED else outcome.usage


def account_of_lost_call(state: SessionState) -> BudgetAccount:
    """Return the account when a model call was lost with its host: perhaps it was billed."""
    model = state.turn.model
    if model is None or model.phase != "started" or not model.granted:
        return state.account
    return with_bill(state.account, Bill(model.effect, model.attempt))


def account_to_release(state: SessionState) -> BudgetAccount:
    """Return the account of a session that goes on: what it was to release still is.

    Else the release could come after a new grant, and nobody would hold what it grants.
    """
    return BudgetAccount(due_closings(state), state.account.news)


def account_of_unstarted(state: SessionState) -> BudgetAccount:
    """Return the account when what was perhaps reserved does not begin for a while."""
    model = state.turn.model
    if model is None or model.phase != "requested" or not state.limited:
        return state.account
    return with_bill(state.account, Bill(model.effect, model.attempt, started=False))


def with_bill(account: BudgetAccount, bill: Bill) -> BudgetAccount:
    """Return *account* with *bill*."""
    return BudgetAccount((*account.bills, bill), account.news)


def reservation_closed(state: SessionState, event: ReservationClosed) -> SessionState:
    """Owe it no more; what was never started may be asked for again, as another attempt."""
    bills = tuple([b for b in state.account.bills if not _is_of(event, b)])
    state = replace(state, account=BudgetAccount(bills, state.account.news))
    if event.shares:
        limit_state = replace(state.limit_state, shares=tuple(sorted(event.shares.items())))
        state = replace(state, limit_state=limit_state)
    model = state.turn.model
    if model is not None and model.phase == "requested" and _is_of(event, model):
        again = replace(model, phase="retry", room=None)
        return replace(state, turn=replace(state.turn, model=again))
    return state


def closes(state: SessionState, event: ReservationClosed) -> bool:
    """Whether *event* closes something that is open."""
    model = state.turn.model
    asked = model is not None and model.phase == "requested" and _is_of(event, model)
    return asked or any(_is_of(event, bill) for bill in state.account.bills)


def _is_of(event: ReservationClosed, call: Bill | ModelCall) -> bool:
    return (event.effect, event.attempt) == (call.effect, call.attempt)


def with_budget_wait(state: SessionState, room: BudgetWait) -> SessionState:
    """Have the model call wait for room."""
    model = state.turn.model
    if model is None or model.phase != "requested":
        return state
    return replace(state, turn=replace(state.turn, model=replace(model, room=room)))


def end_budget_wait(state: SessionState) -> SessionState:
    """Have the model call ask again."""
    model = state.turn.model
    if model is None or model.room is None:
        return state
    return replace(state, turn=replace(state.turn, model=replace(model, room=None)))


# What is told in a fact of its own.


def with_child_message(state: SessionState, message: ChildAsked | ChildEnded) -> SessionState:
    """Remember *message* until its fact was recorded."""
    account = BudgetAccount(state.account.bills, (*state.account.news, message))
    return replace(state, account=account)


def child_fact(state: SessionState) -> ChildSpawned | ChildSettled | None:
    """Return the fact that the oldest of the news leads to."""
    if not state.account.news:
        return None
    match state.account.news[0]:
        case ChildAsked(child=child):
            return ChildSpawned(child=child)
        case ChildEnded() as ended:
            return ChildSettled(**ended.model_dump(exclude={"type"}))


def forget_child_message(state: SessionState) -> SessionState:
    """Forget the oldest of the news."""
    return replace(state, account=BudgetAccount(state.account.bills, state.account.news[1:]))
