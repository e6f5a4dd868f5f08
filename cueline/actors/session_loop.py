"""The loop that drives one session: read the inbox, record facts, start due effects, wait."""

from collections.abc import Sequence
from contextlib import suppress
from datetime import datetime
from functools import partial
from typing import NamedTuple

from cueline.actors.activation import check_secrets, first_event, recover, waited_for_people
from cueline.actors.agent_cache import AgentCache, LoadedAgent
from cueline.actors.breaker_guard import AcquireProbe, BreakerGuard
from cueline.actors.breaker_registry import BreakerRegistry
from cueline.actors.effect_executor import EffectExecutor
from cueline.actors.effect_scheduler import EffectScheduler
from cueline.actors.entity import Entity, PendingAppend
from cueline.actors.fleet_log import queue_end
from cueline.actors.host_dependencies import HostDependencies
from cueline.actors.in_flight import InFlightEffects
from cueline.actors.inbox_reader import InboxReader
from cueline.actors.runner import CallName
from cueline.actors.runner_slots import SlotHolder, SlotTable
from cueline.actors.session_tree import read_start_request
from cueline.actors.timers import CancellationTimers, Timers
from cueline.deciders.session import DRIVEN, due, wake_at
from cueline.deciders.session.due import (
    AwaitMessage,
    CallModel,
    Cancel,
    CloseApproval,
    CloseReservation,
    Effect,
    NotifyPeople,
    ReserveBudget,
    RunTool,
    StartChild,
)
from cueline.errors import CuelineError, WrongExpectedVersionError
from cueline.events.agent import AgentSpec
from cueline.events.session import SessionContinued, SessionEvent
from cueline.events.store import NO_STREAM
from cueline.events.stream import is_model_call

_WITH_A_FACT = Cancel | CallModel | ReserveBudget | RunTool | StartChild | AwaitMessage
"""Effects whose start is recorded, or that end a reservation or an approval."""
_WITHOUT_WAIT = frozenset({"CallDelegated", "MessageAwaited", "ToolSkipped"})
"""Facts that start a call, and that may end it at once."""
_NO_FACTS: tuple[int, Sequence[SessionEvent]] = (NO_STREAM, ())


class _Taken(NamedTuple):
    """The results of an append."""

    started: list[Effect | AcquireProbe]
    vain: list[SessionEvent]
    """The facts that changed nothing."""
    over: list[CallName]
    """The calls that their runners can forget."""
    again: bool
    """Whether effects are due that could not start in this append."""


class SessionLoop:
    """One session in this process, from its activation until it waits or ends."""

    __slots__ = (
        "_agent_cache",
        "_breakers",
        "_clock",
        "_dependencies",
        "_draining",
        "_effect_executor",
        "_effect_scheduler",
        "_entity",
        "_facts",
        "_graces",
        "_guard",
        "_in_flight",
        "_loaded_agent",
        "_mailbox",
        "_slots",
    )
    _loaded_agent: LoadedAgent
    """The agent and its models; set once the agent is known, like the objects that need it."""

    def __init__(
        self,
        entity: Entity,
        dependencies: HostDependencies,
        *,
        agent_cache: AgentCache,
        breakers: BreakerRegistry,
        alarm: Timers,
        slots: SlotTable,
    ) -> None:
        self._entity = entity
        self._dependencies = dependencies
        self._clock = dependencies.clock
        self._agent_cache = agent_cache
        self._breakers = breakers
        self._in_flight = InFlightEffects(alarm)
        self._slots = SlotHolder(slots, self._in_flight)
        self._mailbox = InboxReader(entity, dependencies)
        self._graces = CancellationTimers(dependencies.clock, dependencies.grace_seconds)
        self._draining = False
        self._facts = _NO_FACTS
        """The version at which facts to record arrived, and these facts."""

    def nudge(self) -> None:
        """Read the inbox soon."""
        self._mailbox.news = True
        self._in_flight.ring()

    def drain(self) -> None:
        """Start no effects; stop when the running effects have finished."""
        self._draining = True
        self._in_flight.ring()

    def cut_short(self) -> None:
        """Cancel the running model call, which is recorded as cancelled and made again later."""
        for effect in self._in_flight.model_calls():
            self._in_flight.cancel(effect)

    def hidden(self, text: str) -> str:
        """Return *text* without the agent's secrets, once the agent is known (I11)."""
        known = hasattr(self, "_loaded_agent")
        return self._loaded_agent.redactor.redact(text)[0] if known else text

    @property
    def drains(self) -> bool:
        """Whether the loop starts no more effects."""
        return self._draining

    @property
    def is_busy(self) -> bool:
        """Whether an effect is running."""
        return not self._in_flight.empty

    async def load(self) -> None:
        """Acquire the session and replay it. See `Entity.load`."""
        await self._entity.load()

    @property
    def nudged(self) -> bool:
        """Whether there was a nudge since the inbox was last read."""
        return self._mailbox.news

    @property
    def is_driven(self) -> bool:
        """Whether the session needs an owner."""
        return self._entity.state.status in DRIVEN

    @property
    def inbox_seen(self) -> int:
        """See `SessionState.inbox_seen`."""
        return max(self._entity.state.inbox_read, 1)

    def is_held(self, inbox: int) -> bool:
        """Whether the session is paused because a rule raised; the loop then stops.

        Raises the error of the rule if the session is not paused, or has not read its *inbox* up
        to that version.
        """
        if self._entity.failure is not None and (self.is_driven or inbox > self.inbox_seen):
            raise self._entity.failure
        return self._entity.failure is not None

    async def run(self) -> None:
        """Drive the session until it waits or ends; pause it if a rule raises.

        Raises:
            FencedError: another process owns the session now; stop.
        """
        if self._draining:
            return
        try:
            self._entity.check_fold()
            news = await self._first_facts()
            self._facts = (self._entity.version, news)
            news += await self._new_messages()
            await self._advance(news)
            # A new session gets its executors only here.
            self._entity.share(self._loaded_agent)
            while not self._may_rest():
                moment = wake_at(self._entity.state)
                await self._in_flight.wait(self._wake_time(moment))
                news = self._in_flight.take()
                self._facts = (self._entity.version, news)
                if moment is not None:  # a wait for a breaker has a wake-up time, too
                    news += await self._passed_deadline(moment)
                    news += self._end_breaker_wait()
                if self._mailbox.news:
                    news += await self._new_messages(news)
                await self._advance(news)
                del news  # a waiting session holds as little memory as possible
                self._facts = _NO_FACTS
            await self._entity.rest()
        except CuelineError:
            raise
        except Exception as error:
            if self._entity.version == NO_STREAM and not self._facts[1]:
                raise  # there is no session yet to be paused
            await self._hold(error)
        finally:
            self._in_flight.drop()
            self._slots.close()
            if hasattr(self, "_loaded_agent"):
                await self._agent_cache.give_back(self._loaded_agent)

    async def _hold(self, error: Exception) -> None:
        """Record the known facts, and the outcomes of running effects; start no effects."""
        version, taken = self._facts
        # At another version, they were recorded before the rules raised.
        facts = list(taken) if version == self._entity.version else []
        if self._entity.failure is None:
            with suppress(Exception):  # announced messages are read, if possible
                facts += await self._new_messages(facts)
        while True:
            await self._entity.hold(facts, error, self._mailbox.secret_versions)
            if self._in_flight.empty:
                return
            await self._in_flight.wait(None)
            facts = self._in_flight.take()

    async def _first_facts(self) -> list[SessionEvent]:
        """Return the first facts of the activation: a start, a takeover, or unfinished steps."""
        if self._entity.version == NO_STREAM:
            asked = await read_start_request(self._entity.journal, self._entity.stream)
            await check_secrets(self._entity, self._dependencies, asked.agent)
            loaded_agent = await self._equip(asked.agent)
            return [
                loaded_agent.clean(
                    await first_event(self._entity, asked, loaded_agent.agent, self._clock.now())
                )
            ]
        await check_secrets(self._entity, self._dependencies, self._entity.state.agent)
        await self._equip(self._entity.state.agent)
        return [
            *await recover(self._entity, self._dependencies),
            *await self._passed_deadline(wake_at(self._entity.state)),
            *self._end_breaker_wait(),
        ]

    async def _equip(self, agent: AgentSpec) -> LoadedAgent:
        loaded_agent = self._agent_cache.take(agent)
        entity = self._entity
        entity.share(loaded_agent)
        self._loaded_agent = loaded_agent
        self._guard = guard = BreakerGuard(self._breakers, entity.stream, loaded_agent)
        self._effect_executor = EffectExecutor(
            entity, loaded_agent, self._dependencies, guard, self._slots
        )
        self._effect_scheduler = EffectScheduler(
            entity,
            loaded_agent,
            self._dependencies,
            guard=guard,
            in_flight=self._in_flight,
            slots=self._slots,
        )
        await guard.read()
        return loaded_agent

    async def _new_messages(self, brought: Sequence[SessionEvent] = ()) -> list[SessionEvent]:
        """Return the new messages, up to one that has to wait for the gate."""
        loaded_agent = self._loaded_agent
        messages = await self._mailbox.read(self._in_flight.asks, brought, loaded_agent.redactor)
        return [loaded_agent.clean(message) for message in messages]

    async def _passed_deadline(self, moment: datetime | None) -> list[SessionEvent]:
        """Return the event of a deadline that has passed; empty before the deadline."""
        if moment is None or moment > (now := self._clock.now()):
            return []
        entity = self._entity
        run = entity.state.run
        if run is not None and run.until is not None and run.until <= now:
            return await entity.patiently(
                partial(queue_end, self._dependencies.fleet, entity.state, now)
            )
        waited = await waited_for_people(entity, now)
        continued = SessionContinued(by="deadline", at=now, waited=waited)
        awaits = any(call.phase == "awaiting" for call in entity.state.turn.awake)
        if awaits or entity.state.schedule is not None:
            # A message that was recorded before the deadline counts, also if it is unread.
            return [*await self._new_messages(), continued]
        return [continued]

    def _end_breaker_wait(self) -> list[SessionEvent]:
        """Return the end of a wait for a breaker, if the breaker admits calls again."""
        if not self._guard.may_retry(self._entity.state):
            return []
        return [SessionContinued(by="breaker", at=self._clock.now())]

    async def _advance(self, facts: Sequence[SessionEvent]) -> None:
        """Record *facts*, derived events and the starts of due effects; then execute these."""
        while (taken := await self._record(facts)) is None:
            pass  # the tree has changed
        if taken.again:
            await self._take_agent()
        for name in taken.over:
            runner = self._dependencies.runners.find(name.runner)
            if runner is not None:
                runner.forget(name)
        for effect in taken.started:
            self._start_effect(effect)
        for close in self._effect_scheduler.withdrawn(taken.vain):
            self._start_effect(close)
        self._start_due_effects()
        self._cancel_overdue_effects()
        if taken.again:
            await self._advance(())

    async def _record(self, facts: Sequence[SessionEvent]) -> _Taken | None:
        """Decide on *facts* and record them; None if no fact was recorded: decide again."""
        steps = PendingAppend(self._entity.state)
        started: list[Effect | AcquireProbe] = []
        vain: list[SessionEvent] = []
        for fact in facts:
            if fact.type == "ModelStarted":
                start = self._effect_scheduler.start_reserved
                started += start(fact, steps, draining=self._draining)
            elif not steps.take(fact):
                vain.append(fact)
        changed = self._loaded_agent.differs_from(steps.state.agent)
        if steps.state.queued and not self._draining:
            await self._effect_scheduler.claim_run(steps)
        if not self._draining and not changed:  # breakers and prices are the agent's
            await self._effect_scheduler.find_room(steps)
            started += self._effect_scheduler.start(steps)
        over = self._effect_executor.to_forget(facts, steps.state)
        try:
            await self._entity.record(steps, self._mailbox.secret_versions)
        except WrongExpectedVersionError as error:
            if error.stream == self._entity.stream:
                raise
            for effect in started:
                if isinstance(effect, RunTool):
                    self._slots.free(effect.effect)
            return None
        again = changed or not _WITHOUT_WAIT.isdisjoint([f.type for s in steps.steps for f in s])
        return _Taken(started, vain, over, again)

    async def _take_agent(self) -> None:
        """Switch to the model that a person chose, or to tools that a person accepted."""
        agent = self._entity.state.agent
        if self._loaded_agent.differs_from(agent):
            await self._agent_cache.give_back(self._loaded_agent)
            await self._equip(agent)

    def _start_effect(self, effect: Effect | AcquireProbe) -> None:
        self._in_flight.take_up(effect, self._effect_executor.carry_out)

    def _start_due_effects(self) -> None:
        """Start due effects that need no fact first; recover started ones that do not run here."""
        for effect in due(self._entity.state):
            if self._draining and not isinstance(effect, CloseReservation):
                continue
            if isinstance(effect, _WITH_A_FACT) or self._in_flight.has(effect):
                continue
            if isinstance(effect, CloseApproval) and not self._can_close(effect):
                continue
            if isinstance(effect, NotifyPeople) and effect.at and effect.at > self._clock.now():
                continue
            self._start_effect(effect)

    def _can_close(self, effect: CloseApproval) -> bool:
        """Whether the approval ends now: superseded, or expired with the inbox read since."""
        if effect.superseded_by is not None:
            return True
        if self._clock.now() < effect.deadline_at:
            return False
        if self._mailbox.held_up:
            return False
        if self._mailbox.read_at < effect.deadline_at:
            # A decision recorded before the deadline counts, also if it is unread: read the inbox
            # to its end, pass decisions on, then expire.
            self.nudge()
            return False
        return True

    def _cancel_overdue_effects(self) -> None:
        """Cancel the effects whose grace period after a stop or signal is over."""
        for cancel in self._graces.over(self._entity.state):
            if is_model_call(cancel.effect):
                self._in_flight.cancel(cancel.effect)
            elif not self._in_flight.has(cancel):
                self._start_effect(cancel)

    def _wake_time(self, deadline: datetime | None) -> datetime | None:
        """Return the time at which the loop has to wake without a message."""
        again = self._mailbox.again_at
        if again is not None and deadline is not None:
            deadline = max(deadline, again)  # nothing expires before the inbox is read
        if deadline is not None and deadline <= self._clock.now() and not self._in_flight.empty:
            deadline = None  # effects that are due by then are running
        return min(filter(None, (deadline, again, self._graces.until)), default=None)

    def _may_rest(self) -> bool:
        if self._draining or not self._in_flight.empty:
            return self._in_flight.empty
        return not self._mailbox.news and (self._entity.state.poisoned or not self.is_driven)
