"""Starts the due effects of a session that have breaker, budget, grant and slot."""

import json
from collections.abc import Iterator, Sequence
from datetime import timedelta
from functools import partial

from cueline.actors.agent_cache import LoadedAgent
from cueline.actors.approval_client import seen_digest
from cueline.actors.breaker_guard import AcquireProbe, BreakerGuard
from cueline.actors.entity import Entity, PendingAppend
from cueline.actors.fleet_log import claims
from cueline.actors.host_dependencies import HostDependencies
from cueline.actors.in_flight import InFlightEffects
from cueline.actors.runner_slots import SlotHolder
from cueline.actors.session_tree import room_to_delegate
from cueline.deciders.matching import call_demands
from cueline.deciders.prompt import calls_after
from cueline.deciders.session import SessionState, due
from cueline.deciders.session.delegation import parameters_of_run
from cueline.deciders.session.due import (
    AttachSandbox,
    AwaitMessage,
    CallModel,
    CloseApproval,
    CloseReservation,
    Effect,
    ReserveBudget,
    RunTool,
    StartChild,
)
from cueline.deciders.session.failed_call import degrades
from cueline.deciders.session.limit_state import Bill
from cueline.deciders.session.permission import allowing_rule, need_ended_by
from cueline.deciders.session.run import claimed_by
from cueline.deciders.session.turn import CallApproval
from cueline.events.agent import AgentSpec, ToolSpec
from cueline.events.agent_parts import Demands
from cueline.events.codes import Cause
from cueline.events.message import Arguments
from cueline.events.sanitize import sanitize
from cueline.events.session import (
    ApprovalResolved,
    CallDelegated,
    MessageAwaited,
    ModelStarted,
    SessionEvent,
    SessionWaiting,
    ToolSkipped,
    ToolStarted,
)
from cueline.events.start import agent_named, child_stream, mode_of
from cueline.events.stream import shown

_Startable = (
    AttachSandbox | CallModel | ReserveBudget | RunTool | StartChild | AwaitMessage | AcquireProbe
)


class EffectScheduler:
    """Finds the effects of one session that can start, and adds their starts to an append."""

    __slots__ = ("_dependencies", "_entity", "_guard", "_in_flight", "_loaded_agent", "_slots")

    def __init__(
        self,
        entity: Entity,
        loaded_agent: LoadedAgent,
        dependencies: HostDependencies,
        *,
        guard: BreakerGuard,
        in_flight: InFlightEffects,
        slots: SlotHolder,
    ) -> None:
        self._entity = entity
        self._loaded_agent = loaded_agent
        self._dependencies = dependencies
        self._guard = guard
        self._in_flight = in_flight
        self._slots = slots

    def start(self, steps: PendingAppend) -> list[Effect | AcquireProbe]:
        """Add the starts of due effects to *steps*, and return the effects to execute."""
        started: list[Effect | AcquireProbe] = []
        lacking: list[Demands] = []
        effects = self._unblocked_effects(steps)
        calls = calls_after(self._entity.prompt, steps.facts) if steps.room is not None else {}
        for effect in effects:
            match effect:
                case ReserveBudget() | AcquireProbe() | AttachSandbox():
                    started.append(effect)  # its result starts the call
                case StartChild():
                    self._start_child(effect, calls[effect.effect].arguments, steps)
                case AwaitMessage():
                    self._await_message(effect, steps)
                case CallModel():
                    if steps.take(ModelStarted(effect=effect.effect, attempt=effect.attempt)):
                        started.append(effect)
                case RunTool():
                    fact = self._start_fact(effect, steps.state)
                    if isinstance(fact, Demands):
                        lacking.append(fact)
                    elif steps.take(fact) and fact.type == "ToolStarted":
                        started.append(effect)
                        tool = self._loaded_agent.tools[fact.tool]
                        self._slots.take(fact.effect, fact.runner, tool)
        self._slots.end_search(lacking)
        return started

    def start_reserved(
        self, granted: ModelStarted, steps: PendingAppend, *, draining: bool
    ) -> list[Effect]:
        """Add the start of a call with reserved budget to *steps*, and return its effects."""
        if draining:
            # After a takeover this may be late, and the tree's other sessions need the budget.
            return [CloseReservation(Bill(granted.effect, granted.attempt, started=False))]
        if (model := steps.state.turn.model) is not None:
            call = CallModel(granted.effect, granted.attempt, model.fallback)
            if self._guard.blocked_effects(call, steps.state) is not None:
                return []  # a breaker has opened since; the reservation is found by its key
        if not steps.take(granted) or (model := steps.state.turn.model) is None:
            return []
        return [CallModel(granted.effect, granted.attempt, model.fallback)]

    async def claim_run(self, steps: PendingAppend) -> None:
        """Add the claim of a queued run to *steps*, if a runner takes it now."""
        look = partial(
            claims, self._dependencies.fleet, steps.state, self._dependencies.clock.now()
        )
        for fact in await self._entity.patiently(look):
            steps.take(fact)

    async def find_room(self, steps: PendingAppend) -> None:
        """Note in *steps* the room for the children that calls may start now."""
        if not self._loaded_agent.delegates:
            return
        entity = self._entity
        room = await entity.patiently(partial(room_to_delegate, entity.journal, steps.state))
        if room is not None:
            offered = (await entity.patiently(self._dependencies.fleet.read)).blueprints
            room = room._replace(blueprints={name: each.agent for name, each in offered.items()})
        steps.room = room

    def withdrawn(self, rejected: Sequence[SessionEvent]) -> Iterator[CloseApproval]:
        """Yield the ends of approvals that the gate opened for a call no longer needed."""
        for asked in rejected:
            if asked.type == "ApprovalRequested":
                by = need_ended_by(self._entity.state, asked.effect)
                if by is not None:
                    yield CloseApproval(asked.effect, asked.approval, asked.deadline_at, by)

    def _unblocked_effects(self, steps: PendingAppend) -> list[_Startable]:
        """Return the due effects that no breaker blocks; record the blocked ones.

        The agent may then use a fallback, or continue without the tool; so more may become due.
        """
        kept = True
        while kept:
            kept = False
            out: list[_Startable] = []
            for effect in due(steps.state):
                if self._in_flight.has(effect):
                    continue
                match effect:
                    case StartChild() | AwaitMessage():  # no breaker counts its failures
                        out.append(effect)
                    case CallModel() | ReserveBudget() | RunTool():
                        blocked = self._guard.blocked_effects(effect, steps.state)
                        if blocked is None:
                            out.append(effect)
                        elif isinstance(blocked, AcquireProbe):
                            out += [] if self._in_flight.has(blocked) else [blocked]
                        else:
                            if self._may_hold_room(effect):
                                blocked = blocked.model_copy(update={"reserved": True})
                            kept = steps.take(blocked) or kept
        needs_sandbox = self._loaded_agent.agent.sandbox is not None
        return self._with_sandbox(out, steps.state) if needs_sandbox else out

    def _with_sandbox(self, effects: list[_Startable], state: SessionState) -> list[_Startable]:
        """Return *effects*, with one start of the sandbox instead of the calls that run in it."""
        if state.sandbox.attached:
            return effects
        rest: list[_Startable] = []
        attach: AttachSandbox | None = None
        for each in effects:
            call = state.call(each.effect) if isinstance(each, RunTool) else None
            if call is None or not self._loaded_agent.tools[call.tool].needs_workspace:
                rest.append(each)
            elif not call.unreached:  # otherwise a message says when there is a slot
                attach = AttachSandbox(call.effect)
        return rest if attach is None or self._in_flight.has(attach) else [*rest, attach]

    def _may_hold_room(self, effect: Effect) -> bool:
        """Whether the ledger may hold a reservation for the call, from any owner."""
        return isinstance(effect, ReserveBudget) and effect in due(self._entity.state)

    def _start_fact(self, effect: RunTool, state: SessionState) -> SessionEvent | Demands:
        """Return the start of *effect*, or why it cannot start; its demands if no slot is free."""
        call = state.call(effect.effect)
        assert call is not None, "what is due is in the state"
        tool, runners = self._loaded_agent.tools[call.tool], self._dependencies.runners
        demands = call_demands(tool, self._loaded_agent.agent, claimed_by(state))
        runner = runners.choose(demands, self._slots.full(tool))
        if runner is None and runners.choose(demands) is not None:
            return demands
        if call.approval is not None and (by := self._void_reason(effect, call.approval)):
            # I9: ask a person again.
            return ApprovalResolved(approval=call.approval.id, verdict="superseded", by=by)
        if runner is None:
            return SessionWaiting(
                kind="runner",
                cause=Cause(code="no_runner", demands=demands, unmet=runners.unmet(demands)),
                deadline_at=self._dependencies.clock.now()
                + timedelta(seconds=self._dependencies.removal_seconds),
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

    def _start_child(self, effect: StartChild, parameters: Arguments, steps: PendingAppend) -> None:
        """Add the start of a child, or the skip of the call, to *steps*."""
        state, room = steps.state, steps.room
        call = state.call(effect.effect)
        assert call is not None, "what is due is in the state"
        assert room is not None, "the tree was counted for this append"
        if effect.valid_until is not None and self._dependencies.clock.now() > effect.valid_until:
            assert call.approval is not None, "only a grant has an end"
            void = ApprovalResolved(approval=call.approval.id, verdict="superseded", by="deadline")
            steps.take(void)
            return
        child = child_stream(state.stream, effect.effect)
        tool = self._loaded_agent.tools[call.tool]
        agent = agent_named(tool, parameters)
        reason = ""
        if agent not in state.agent.agents and agent not in room.blueprints:
            reason = f"no runner has ever offered the blueprint {agent}"
        elif child in room.taken:
            reason = f"a session with the id {shown(child)} exists"
        elif (left := room._replace(used=room.used + steps.children)).used >= room.most:
            reason = left.refusal
        elif agent not in state.agent.agents:
            reason = self._fault(tool, room.blueprints[agent], parameters)
        if not reason and state.progress is not None:  # a model's call was checked earlier
            reason = self._dependencies.check_call(tool, parameters) or ""
        if reason:
            degraded = degrades(state, call)
            steps.take(ToolSkipped(effect=effect.effect, reason=reason, degraded=degraded))
            return
        steps.take(
            CallDelegated(
                effect=effect.effect,
                tool=call.tool,
                agent=agent,
                child=child,
                mode="sync" if _has_parameters(state, agent) else mode_of(parameters),
                deadline_at=self._dependencies.clock.now()
                + timedelta(seconds=tool.timeout_seconds),
                rule=allowing_rule(call),
            )
        )

    def _fault(self, tool: ToolSpec, blueprint: AgentSpec, arguments: Arguments) -> str:
        """Return why a run of *blueprint* cannot start with *arguments*; empty if it can start."""
        if (schema := blueprint.parameters_schema) is None:
            return ""
        fitting = tool.model_copy(update={"parameters": schema, "digest": json.dumps(schema)})
        return self._dependencies.check_call(fitting, parameters_of_run(arguments)) or ""

    def _await_message(self, effect: AwaitMessage, steps: PendingAppend) -> None:
        """Add the beginning of a wait for a message to *steps*."""
        call, progress = steps.state.call(effect.effect), steps.state.progress
        assert call is not None, "what is due is in the state"
        assert progress is not None, "only a plan waits for messages"
        longest = progress.steps[call.tool].timeout_seconds
        seconds = longest or steps.state.agent.policy.approval_seconds
        until = self._dependencies.clock.now() + timedelta(seconds=seconds)
        steps.take(MessageAwaited(effect=effect.effect, name=call.message, deadline_at=until))

    def _void_reason(self, effect: RunTool, grant: CallApproval) -> str:
        """Return why a grant is void: expired, or the file has changed; empty while it is valid."""
        if effect.valid_until is not None and self._dependencies.clock.now() > effect.valid_until:
            return "deadline"
        first = effect.attempt == 1
        changed = first and grant.seen and self._difference(effect.effect) != grant.seen
        return "change" if changed else ""

    def _difference(self, effect: str) -> str:
        """Return the digest of the diff of the call, computed now."""
        asked, agent = self._entity.prompt.calls[effect], self._loaded_agent.agent
        tool = self._loaded_agent.tools[asked.name]
        preview = self._dependencies.preview(tool, asked.arguments, agent)
        return seen_digest(sanitize(preview, self._loaded_agent.redactor)[0])


def _has_parameters(state: SessionState, agent: str) -> bool:
    """Whether *agent* declares parameters; then `mode` is no argument of the call."""
    known = state.agent.agents.get(agent)
    return known is not None and known.parameters_schema is not None
