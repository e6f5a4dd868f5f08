"""Reserves budget at the cost ledger before a model call, and settles it afterwards (I8)."""

from collections.abc import Sequence
from datetime import timedelta
from decimal import Decimal

from cueline.actors.agent_cache import LoadedAgent
from cueline.actors.background_task import isolate_cancellation
from cueline.actors.cost_ledger import LedgerPort
from cueline.actors.entity import Entity
from cueline.actors.host_dependencies import HostDependencies
from cueline.actors.model_port import ModelRequest, TokenCounter
from cueline.deciders import budget
from cueline.deciders.budget import Amount, Closing, ModelCallName
from cueline.deciders.session.budget import BUSY_SECONDS, budget_of, path_of
from cueline.deciders.session.due import ReserveBudget
from cueline.deciders.session.limit_state import Bill
from cueline.events.agent import answering
from cueline.events.message import prompt_size
from cueline.events.session import ModelStarted, ReservationClosed, SessionWaiting


class BudgetClient:
    """Reserves and settles the model calls of one session."""

    __slots__ = ("_dependencies", "_entity", "_loaded_agent")

    def __init__(
        self, entity: Entity, loaded_agent: LoadedAgent, dependencies: HostDependencies
    ) -> None:
        self._entity = entity
        self._loaded_agent = loaded_agent
        self._dependencies = dependencies

    async def reserve(
        self, effect: ReserveBudget, messages: Sequence[bytes]
    ) -> list[ModelStarted | SessionWaiting | ReservationClosed]:
        """Reserve budget for *effect*.

        Returns the start of the call, a wait, or the close of an old reservation.
        """
        agent = answering(self._loaded_agent.agent, effect.fallback)
        counted = await self._counted(effect, messages)
        tokens, usd = self._dependencies.bound(agent, prompt_size(messages), counted)
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
        until = self._dependencies.clock.now() + timedelta(seconds=BUSY_SECONDS)
        return [SessionWaiting(kind="budget", cause=answer.cause, deadline_at=until)]

    async def close(self, bill: Bill) -> ReservationClosed:
        """Settle or release the reservation of a call."""
        state, epoch = self._entity.state, self._entity.epoch
        call = ModelCallName(self._entity.stream, bill.effect, bill.attempt)
        if bill.started:
            settle = budget.Settle(call, epoch, path_of(state), self._spent(bill))
            return _closed(call, await self._ledger.settle(budget_of(state), settle))
        release = budget.Release(call, epoch, path_of(state))
        return _closed(call, await self._ledger.release(budget_of(state), release))

    async def _counted(self, effect: ReserveBudget, messages: Sequence[bytes]) -> int | None:
        """Return the vendor's token count of the prompt; None if the vendor gives no count.

        The count can only make the reservation smaller, so failures are ignored.
        """
        try:
            agent, model = self._loaded_agent.model(effect.fallback)
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
            counted = await isolate_cancellation(model.count(request))
        except Exception:  # noqa: BLE001 - if the model cannot be reached, the call itself fails and reports it
            return None
        return counted if counted is not None and counted > 0 else None

    @property
    def _ledger(self) -> LedgerPort:
        return self._dependencies.ledger

    def _spent(self, bill: Bill) -> Amount | None:
        """Return the cost of the call; None if its usage is unknown."""
        if bill.usage is None:
            return None
        return _amount(bill.usage.total, None if bill.cost is None else bill.cost.usd)


def _amount(tokens: int, usd: Decimal | None) -> Amount:
    """Return the amount; an unknown price is an error only if a limit needs the price."""
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
