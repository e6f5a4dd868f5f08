"""A ledger for the simulated shell: the rules of a budget, and neighbours that share it."""

from datetime import datetime, timedelta
from decimal import Decimal

from cueline.deciders import budget
from cueline.deciders.budget import BUDGET, Amount, BudgetCommand, ModelCallName, fencing_epoch
from cueline.deciders.session import SessionState
from cueline.deciders.session.budget import BUSY_SECONDS, path_of
from cueline.deciders.session.due import CloseReservation, ReserveBudget
from cueline.events.budget import Allowance, BudgetOffered
from cueline.events.session import ModelStarted, ReservationClosed, SessionEvent, SessionWaiting

PRICE = Amount(100, Decimal("0.10"))
"""What a model call may take; it takes half of it."""
NEIGHBOUR = "session-default/neighbour"


class SimulatedLedger:
    """One budget, which outlives the session's hosts."""

    def __init__(self) -> None:
        self.state = BUDGET.initial_state
        self.has_room_for: set[str] = set()
        """The sessions that were told so, and did not hear of it yet."""
        self._neighbours = 0

    def answer(
        self,
        session: SessionState,
        effect: ReserveBudget | CloseReservation,
        epoch: int,
        now: datetime,
    ) -> SessionEvent:
        """Do what is owed to the ledger, and return what came of it."""
        if isinstance(effect, CloseReservation):
            return self._close(session, effect, epoch)
        call = ModelCallName(session.stream, effect.effect, effect.attempt)
        asked = budget.Reserve(call, epoch, path_of(session), PRICE)
        self._tell(asked)
        answer = budget.answer(asked, self.state)
        if answer.verdict == "granted":
            return ModelStarted(effect=effect.effect, attempt=effect.attempt, grant=str(call))
        if answer.verdict == "closed":
            return self._closed(call)
        if answer.verdict == "exhausted":
            return SessionWaiting(kind="budget", cause=answer.cause, exhausted=True)
        until = now + timedelta(seconds=BUSY_SECONDS)
        return SessionWaiting(kind="budget", cause=answer.cause, deadline_at=until)

    def raise_limits(self, session: SessionState, cost: Decimal, message: str) -> None:
        """Let the session spend more."""
        self._tell(budget.Raise(session.stream, path_of(session), None, cost, message))

    def neighbour(self, session: SessionState, *, takes: bool) -> None:
        """Have another session of the tree take a part of the budget, or give it back."""
        if session.stream not in self.state.nodes:
            return
        path = (Allowance(session=NEIGHBOUR), *path_of(session))
        self._neighbours += takes
        call = ModelCallName(NEIGHBOUR, f"{self._neighbours}.m", 1)
        if takes:
            self._tell(budget.Reserve(call, 1, path, PRICE))
        else:
            self._tell(budget.Release(call, 1, path))

    def holds(self, session: str) -> bool:
        """Whether something is held for the session."""
        node = self.state.nodes.get(session)
        return node is not None and node.held is not None

    def _close(
        self, session: SessionState, effect: CloseReservation, epoch: int
    ) -> ReservationClosed:
        bill, path = effect.bill, path_of(session)
        call = ModelCallName(session.stream, bill.effect, bill.attempt)
        if not bill.started:
            self._tell(budget.Release(call, epoch, path))
        else:
            half = Amount(PRICE.tokens // 2, PRICE.usd / 2)
            spent = None if bill.usage is None else half
            self._tell(budget.Settle(call, epoch, path, spent))
        return self._closed(call)

    def _closed(self, call: ModelCallName) -> ReservationClosed:
        told = budget.closing_of(call, self.state)
        return ReservationClosed(
            effect=call.effect,
            attempt=call.attempt,
            outcome=told.outcome,
            tokens=told.amount.tokens,
            usd=told.amount.usd,
            shares=told.shares,
        )

    def _tell(self, command: BudgetCommand) -> None:
        assert fencing_epoch(command, self.state) is None, "I3: the owner is fenced"
        facts = BUDGET.decide(command, self.state)
        self.state = BUDGET.replay(facts, self.state)
        for node in self.state.nodes.values():
            for limit, most in node.limits.items():
                taken = (node.settled + node.reserved).of(limit)
                assert taken <= most, f"I8: {taken} of {most}"
        for fact in facts:
            if isinstance(fact, BudgetOffered):
                self.has_room_for.update(fact.sessions)
