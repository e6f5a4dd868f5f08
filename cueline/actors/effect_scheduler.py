"""What of a session may start now: what is due, that no breaker, grant or runner keeps back."""

from datetime import timedelta

from cueline.actors.agent_cache import LoadedAgent
from cueline.actors.approval_client import seen_digest
from cueline.actors.breaker_guard import AcquireProbe, BreakerGuards
from cueline.actors.entity import Entity, PendingAppend
from cueline.actors.host_dependencies import RUNNER_SECONDS, HostDependencies
from cueline.actors.in_flight import InFlightEffects
from cueline.actors.slot import SlotHolder
from cueline.deciders.session import SessionState, due
from cueline.deciders.session.due import CallModel, Effect, ReserveBudget, RunTool
from cueline.deciders.session.permission import allowing_rule
from cueline.deciders.session.turn import CallApproval
from cueline.events.cause import Cause
from cueline.events.sanitize import sanitize
from cueline.events.session import (
    ApprovalResolved,
    ModelStarted,
    SessionEvent,
    SessionWaiting,
    ToolStarted,
)

_ASKED_FIRST = ReserveBudget | AcquireProbe
_STARTABLE = CallModel | ReserveBudget | RunTool
_STARTS = ("ModelStarted", "ToolStarted")


class EffectScheduler:
    """Finds out what of one session may start, and the facts that say so."""

    __slots__ = ("_entity", "_guards", "_in_flight", "_loaded_agent", "_parts", "_slots")

    def __init__(
        self,
        entity: Entity,
        loaded_agent: LoadedAgent,
        parts: HostDependencies,
        *,
        guards: BreakerGuards,
        in_flight: InFlightEffects,
        slots: SlotHolder,
    ) -> None:
        self._entity = entity
        self._loaded_agent = loaded_agent
        self._parts = parts
        self._guards = guards
        self._in_flight = in_flight
        self._slots = slots

    def start(self, steps: PendingAppend) -> list[Effect | AcquireProbe]:
        """Take the starts of what is due into *steps*, and return what they start."""
        started: list[Effect | AcquireProbe] = []
        lacks = False
        for effect in self._let_out(steps):
            if isinstance(effect, _ASKED_FIRST):
                started.append(effect)  # what comes of it starts the call
                continue
            fact = self._start_of(effect, steps.state)
            if fact is None:
                lacks = True
            elif steps.take(fact) and fact.type in _STARTS:
                started.append(effect)
                if fact.type == "ToolStarted":
                    self._slots.take(fact.effect, fact.runner, self._loaded_agent.tools[fact.tool])
        self._slots.end_search(lacks=lacks)
        return started

    def still_goes(self, granted: ModelStarted, state: SessionState) -> bool:
        """Whether a call may go out that was granted: a breaker may have opened meanwhile."""
        model = state.turn.model
        if model is None:
            return True
        call = CallModel(granted.effect, granted.attempt, model.fallback)
        return self._guards.blocked_effects(call, state) is None

    def _let_out(
        self, steps: PendingAppend
    ) -> list[CallModel | ReserveBudget | RunTool | AcquireProbe]:
        """Return what is due and no breaker keeps back; what one does keep back is recorded.

        An agent may do without, or use something else: then more is due.
        """
        kept = True
        while kept:
            kept = False
            out: list[CallModel | ReserveBudget | RunTool | AcquireProbe] = []
            for effect in due(steps.state):
                if not isinstance(effect, _STARTABLE) or self._in_flight.has(effect):
                    continue
                match self._guards.blocked_effects(effect, steps.state):
                    case None:
                        out.append(effect)
                    case AcquireProbe() as probe:
                        out += [] if self._in_flight.has(probe) else [probe]
                    case waiting:
                        if self._may_hold_room(effect):
                            waiting = waiting.model_copy(update={"reserved": True})
                        kept = steps.take(waiting) or kept
        return out

    def _may_hold_room(self, effect: Effect) -> bool:
        """Whether the ledger was asked for it, here or by a former owner: it was due before."""
        return isinstance(effect, ReserveBudget) and effect in due(self._entity.state)

    def _start_of(self, effect: CallModel | RunTool, state: SessionState) -> SessionEvent | None:
        """Return what begins *effect*, or why it cannot be; None where it lacks a slot."""
        if isinstance(effect, CallModel):
            return ModelStarted(effect=effect.effect, attempt=effect.attempt)
        call = state.call(effect.effect)
        assert call is not None, "what is due is in the state"
        tool, place = self._loaded_agent.tools[call.tool], self._loaded_agent.agent.workspace
        runner = self._parts.runners.choose(tool, place, self._slots.full(tool))
        if runner is None and self._parts.runners.choose(tool, place) is not None:
            return None
        if call.approval is not None and (by := self._outdated(effect, call.approval)):
            # I9: a person is asked again.
            return ApprovalResolved(approval=call.approval.id, verdict="superseded", by=by)
        if runner is None:
            return SessionWaiting(
                kind="runner",
                cause=Cause(code="no_runner"),
                deadline_at=self._parts.clock.now() + timedelta(seconds=RUNNER_SECONDS),
                effects=(effect.effect,),
            )
        return ToolStarted(
            effect=effect.effect,
            attempt=effect.attempt,
            tool=call.tool,
            runner=runner,
            epoch=self._entity.epoch,
            rule=allowing_rule(call),
            usd=call.judged.usd,
            notify=call.judged.answer == "notify",
        )

    def _outdated(self, effect: RunTool, grant: CallApproval) -> str:
        """Return what has ended a grant, its time or a change of the file; empty while it holds."""
        if effect.valid_until is not None and self._parts.clock.now() > effect.valid_until:
            return "deadline"
        first = effect.attempt == 1
        changed = first and grant.seen and self._difference(effect.effect) != grant.seen
        return "change" if changed else ""

    def _difference(self, effect: str) -> str:
        """Return the digest of what the call would change now, as people would be shown it."""
        asked, agent = self._entity.prompt.calls[effect], self._loaded_agent.agent
        tool = self._loaded_agent.tools[asked.name]
        preview = self._parts.preview(tool, asked.arguments, agent.workspace)
        return seen_digest(sanitize(preview, self._loaded_agent.redactor)[0])
