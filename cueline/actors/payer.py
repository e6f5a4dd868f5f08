"""Asking the cost ledger for room before a model call, and closing it after (I8)."""

from collections.abc import Sequence
from datetime import timedelta
from decimal import Decimal

from cueline.actors.collaborator import Collaborators
from cueline.actors.cost_ledger import LedgerPort
from cueline.actors.entity import Entity
from cueline.actors.foreign import foreign
from cueline.actors.model import ModelRequest, TokenCounter
from cueline.actors.outfit import Outfit
from cueline.deciders import budget
from cueline.deciders.budget import Amount, Closing, ModelCallName
from cueline.deciders.session.budget import BUSY_SECONDS, budget_of, path_of
from cueline.deciders.session.due import Reserve
from cueline.deciders.session.meter import Bill
from cueline.events.agent import answering
from cueline.events.session import ModelStarted, ReservationClosed, SessionWaiting


class Payer:
    """Reserves and pays the model calls of one session."""

    __slots__ = ("_entity", "_outfit", "_parts")

    def __init__(self, entity: Entity, outfit: Outfit, parts: Collaborators) -> None:
        self._entity = entity
        self._outfit = outfit
        self._parts = parts

    async def reserve(
        self, effect: Reserve, messages: Sequence[bytes]
    ) -> list[ModelStarted | SessionWaiting | ReservationClosed]:
        """Ask for room: the call may start, or waits, or was given up before."""
        agent = answering(self._outfit.agent, effect.fallback)
        counted = await self._counted(effect, messages)
        tokens, usd = self._parts.bound(agent, sum(map(len, messages)), counted)
        call = ModelCallName(self._entity.stream, effect.effect, effect.attempt)
        command = budget.Reserve(
            call, self._entity.epoch, path_of(self._entity.state), _amount(tokens, usd)
        )
        answer = await self._ledger.reserve(budget_of(self._entity.state), command)
        if answer.verdict == "granted":
            return [ModelStarted(effect=effect.effect, attempt=effect.attempt, grant=str(call))]
        if answer.verdict == "closed":
            return [_closed(call, Closing("released"))]
        assert answer.cause is not None, "who is refused is told why"
        if answer.verdict == "exhausted":
            return [SessionWaiting(kind="budget", cause=answer.cause, exhausted=True)]
        until = self._parts.clock.now() + timedelta(seconds=BUSY_SECONDS)
        return [SessionWaiting(kind="budget", cause=answer.cause, deadline_at=until)]

    async def close(self, bill: Bill) -> ReservationClosed:
        """Tell the ledger what became of a call."""
        state, epoch = self._entity.state, self._entity.epoch
        call = ModelCallName(self._entity.stream, bill.effect, bill.attempt)
        if bill.started:
            settle = budget.Settle(call, epoch, path_of(state), self._spent(bill))
            return _closed(call, await self._ledger.settle(budget_of(state), settle))
        release = budget.Release(call, epoch, path_of(state))
        return _closed(call, await self._ledger.release(budget_of(state), release))

    async def _counted(self, effect: Reserve, messages: Sequence[bytes]) -> int | None:
        """Return the vendor's own count of the prompt; None where none comes.

        It only narrows what is reserved: whatever it meets, nothing is recorded of it.
        """
        try:
            agent, model = self._outfit.model(effect.fallback)
            if not isinstance(model, TokenCounter):
                return None
            request = ModelRequest(
                session=self._entity.stream,
                effect=effect.effect,
                turn=self._entity.state.turn.number,
                attempt=effect.attempt,
                agent=agent,
                messages=messages,
            )
            counted = await foreign(model.count(request))
        except Exception:  # noqa: BLE001 - if the model cannot be asked, the call itself will tell
            return None
        return counted if counted is not None and counted > 0 else None

    @property
    def _ledger(self) -> LedgerPort:
        return self._parts.ledger

    def _spent(self, bill: Bill) -> Amount | None:
        """Return what the call cost, as far as anybody knows."""
        if bill.usage is None:
            return None
        return _amount(bill.usage.total, None if bill.cost is None else bill.cost.usd)


def _amount(tokens: int, usd: Decimal | None) -> Amount:
    """Return an amount; a price that nobody knows counts only where it has to be known."""
    return Amount(tokens) if usd is None else Amount(tokens, usd)


def _closed(call: ModelCallName, closing: Closing) -> ReservationClosed:
    return ReservationClosed(
        effect=call.effect,
        attempt=call.attempt,
        outcome=closing.outcome,
        tokens=closing.amount.tokens,
        usd=closing.amount.usd,
        shares=closing.shares,
    )
