"""Drives one session: reads its inbox, records, does what is due, until it rests."""

import asyncio
from collections.abc import Coroutine
from datetime import UTC, datetime, timedelta
from typing import Any, cast

from cueline.actors.approval_gate import ApprovalName
from cueline.actors.effect import RUNNER_SECONDS, Collaborators, Performer
from cueline.actors.entity import Entity, Steps
from cueline.actors.model import Model, ModelFactory
from cueline.actors.runner import CallName
from cueline.deciders.approval import Vote
from cueline.deciders.session import Status, due, following, wake_at
from cueline.deciders.session.decide import allowing_rule
from cueline.deciders.session.due import (
    AskApproval,
    CallModel,
    Cancel,
    CloseApproval,
    Effect,
    ReconcileTool,
    RecoverTool,
    RunTool,
)
from cueline.errors import FencedError, StaleOrderError
from cueline.events.agent import AgentSpec
from cueline.events.inbox import DecisionGiven, InboxMessage, StartAsked
from cueline.events.session import (
    ApprovalResolved,
    GateAnswer,
    LostAttempt,
    MessageReceived,
    ModelStarted,
    SessionContinued,
    SessionEvent,
    SessionForked,
    SessionStarted,
    SessionTakenOver,
    SessionWaiting,
    ToolStarted,
)
from cueline.events.store import NO_STREAM, from_us
from cueline.events.stream import sibling

GRACE_SECONDS = 5.0
"""What is in flight may finish, before it is cancelled."""
_LONG_AGO = datetime.min.replace(tzinfo=UTC)


class Models:
    """The models in use, one for each way an agent is set up."""

    def __init__(self, make: ModelFactory) -> None:
        self._make = make
        self._made: dict[str, Model] = {}

    def of(self, agent: AgentSpec) -> Model:
        """Return the model that *agent* thinks with."""
        setup = agent.model_dump_json(
            include={"provider", "model", "parameters", "base_url", "key_variable"}
        )
        if setup not in self._made:
            self._made[setup] = self._make(agent)
        return self._made[setup]

    async def close(self) -> None:
        """Let go of all connections."""
        for model in self._made.values():
            await model.close()


class Drive:
    """One session in this process, from its activation until it rests."""

    def __init__(self, entity: Entity, parts: Collaborators, models: Models) -> None:
        self.entity = entity
        self._parts = parts
        self._models = models
        self._performer: Performer | None = None
        self._hand: dict[str, asyncio.Task[list[SessionEvent]]] = {}
        self._outcomes: list[SessionEvent] = []
        self._cancelled: set[tuple[str, int]] = set()
        self._broken: BaseException | None = None
        """What ended an effect that nobody expected to end so."""
        self._read_at = _LONG_AGO
        """When the inbox was last read to its end."""
        self._wake = asyncio.Event()
        self._mail = True
        """There may be something new in the inbox."""
        self._no_runner = False
        """The wait for a runner is over, and there is still none."""

    def nudge(self) -> None:
        """Look into the inbox."""
        self._mail = True
        self._wake.set()

    async def load(self) -> None:
        """Become the owner, and fold the past.

        Raises:
            FencedError: somebody else was quicker.
            CorruptEventError: the past cannot be read; an operator restores it.
            UnknownEventTypeError: the past needs a newer cueline.
        """
        await self.entity.load()

    async def run(self) -> None:
        """Drive until the session rests or ends.

        Raises:
            FencedError: somebody else owns it now; nothing more may be done for it.
        """
        try:
            commands = await self._opening()
            while True:
                commands += await self._messages()
                await self._advance(commands)
                if not self._hand and not self._outcomes and not self._mail and self._rests():
                    return
                commands = await self._next()
        except StaleOrderError as error:
            raise FencedError(self.entity.stream, error.epoch, error.current) from error
        finally:
            for task in self._hand.values():
                task.cancel()

    def _rests(self) -> bool:
        state = self.entity.state
        return state.status not in (Status.RUNNING, Status.STOPPING) or state.poisoned

    async def _opening(self) -> list[SessionEvent]:
        """Return what the first step records: a start, a takeover, or what a cut left undone."""
        state = self.entity.state
        now = self._parts.clock.now()
        if self.entity.version == NO_STREAM:
            return [await self._start()]
        self._know_agent(state.agent)
        if state.status in (Status.RUNNING, Status.STOPPING):
            model = state.turn.model
            lost = (
                (LostAttempt(effect=model.effect, attempt=model.attempt),)
                if model is not None and model.phase == "started"
                else ()
            )
            return [SessionTakenOver(epoch=self.entity.epoch, lost_attempts=lost, at=now)]
        if following(state):
            return [SessionContinued(by="replay", at=now)]
        return self._deadline(now)

    async def _start(self) -> SessionEvent:
        """Return how the session begins; its inbox begins with the wish for it."""
        inbox = sibling(self.entity.stream, "inbox")
        async for _, fact in self.entity.journal.read(inbox, NO_STREAM, 1):
            asked = cast("StartAsked", fact)
        self._know_agent(asked.agent)
        if asked.fork_of is None:
            started: SessionStarted | SessionForked = SessionStarted(
                agent=asked.agent,
                goal=asked.goal,
                open=asked.open,
                attached=asked.attached,
                labels=asked.labels,
                epoch=self.entity.epoch,
            )
        else:
            await self.entity.inherit(asked.fork_of.stream, asked.fork_of.version)
            started = SessionForked(
                parent=asked.fork_of.stream,
                version=asked.fork_of.version,
                hash=asked.fork_of.hash,
                agent=asked.agent,
                goal=asked.goal,
                open=asked.open,
                attached=asked.attached,
                note=asked.note,
                epoch=self.entity.epoch,
            )
        return self._known().clean(started)

    def _know_agent(self, agent: AgentSpec) -> None:
        self.entity.journal = self._parts.journal(agent)
        model = self._models.of(agent)
        self._performer = Performer(self.entity.stream, agent, model, self._parts)

    async def _messages(self) -> list[SessionEvent]:
        """Read the inbox; hand every decision to the gate before the session learns of it."""
        if not self._mail:
            return []
        self._mail = False
        self._read_at = self._parts.clock.now()
        inbox = sibling(self.entity.stream, "inbox")
        received: list[SessionEvent] = []
        seen = max(self.entity.state.inbox_read, 1)
        async for recorded, said in self.entity.journal.read(inbox, seen):
            message = cast("InboxMessage", said)
            at = from_us(recorded.recorded_us)
            answer = None
            if isinstance(message, DecisionGiven):
                answer = await self._vote(message, f"{inbox}@{recorded.version}", at)
            fact = MessageReceived(
                inbox_version=recorded.version,
                recorded_at=at,
                message=message,
                gate_answer=answer,
            )
            received.append(self._known().clean(fact))
        return received

    async def _vote(self, message: DecisionGiven, name: str, at: datetime) -> GateAnswer:
        vote = Vote(message.verdict, message.digest, message.by, message.note, name, at)
        return await self._parts.gate.vote(ApprovalName(self.entity.stream, message.approval), vote)

    async def _advance(self, commands: list[SessionEvent]) -> None:
        """Record *commands*, what follows, and the starts of what is due; then do it."""
        steps = Steps(self.entity.state)
        for command in commands:
            steps.take(command)
        started = self._starts(steps)
        await self.entity.record(steps)
        for effect, fact in started:
            self._launch(effect, fact)
        self._launch_others()

    def _starts(self, steps: Steps) -> list[tuple[Effect, SessionEvent]]:
        """Take the starts of what is due into *steps*."""
        started: list[tuple[Effect, SessionEvent]] = []
        again = True
        while again:
            again = False
            for effect in due(steps.state):
                if isinstance(effect, CallModel | RunTool) and _hand(effect) not in self._hand:
                    fact = self._start_of(effect, steps)
                    if fact is not None and steps.take(fact):
                        started.append((effect, fact))
                        again = True
                        break
        return [pair for pair in started if isinstance(pair[1], ModelStarted | ToolStarted)]

    def _start_of(self, effect: CallModel | RunTool, steps: Steps) -> SessionEvent | None:
        if isinstance(effect, CallModel):
            return ModelStarted(effect=effect.effect, attempt=effect.attempt)
        now = self._parts.clock.now()
        call = steps.state.call(effect.effect)
        assert call is not None, "what is due is in the state"
        if effect.valid_until is not None and now > effect.valid_until:
            assert call.approval is not None, "a deadline belongs to a grant"
            return ApprovalResolved(approval=call.approval.id, verdict="superseded", by="deadline")
        agent = steps.state.agent
        tool = next(tool for tool in agent.tools if tool.name == call.tool)
        runner = self._parts.runners.choose(tool, agent.workspace)
        if runner is None:
            return self._without_runner(effect, steps, now)
        self._no_runner = False
        return ToolStarted(
            effect=effect.effect,
            attempt=effect.attempt,
            tool=call.tool,
            runner=runner,
            epoch=self.entity.epoch,
            rule=allowing_rule(steps.state, call),
        )

    def _without_runner(self, effect: RunTool, steps: Steps, now: datetime) -> SessionEvent | None:
        if self._hand or steps.state.runner_wait is not None:
            return None
        if self._no_runner:
            return SessionWaiting(kind="operator", why="error: no runner reaches the workspace")
        return SessionWaiting(
            kind="runner",
            why="no runner reaches the workspace",
            deadline_at=now + timedelta(seconds=RUNNER_SECONDS),
            effects=(effect.effect,),
        )

    def _launch(self, effect: Effect, fact: SessionEvent) -> None:
        """Do what was recorded as started."""
        performer, prompt = self._known(), self.entity.prompt
        if isinstance(effect, CallModel):
            turn = self.entity.state.turn.number
            self._do(_hand(effect), performer.call_model(effect, turn, prompt.messages))
        elif isinstance(effect, RunTool) and isinstance(fact, ToolStarted):
            order = performer.order(
                effect.effect,
                effect.attempt,
                prompt.calls[effect.effect],
                runner=fact.runner,
                epoch=self.entity.epoch,
                digest=effect.digest,
            )
            self._do(_hand(effect), performer.run_tool(order))

    def _launch_others(self) -> None:
        """Do what is due and needs no fact before it."""
        state = self.entity.state
        if state.finished:
            return
        for effect in due(state):
            if _hand(effect) not in self._hand and (work := self._work(effect)) is not None:
                self._do(_hand(effect), work)
        model = state.turn.model
        if state.hold == "signal" and model is not None and model.phase == "started":
            self._begin_cancel(model.effect, model.attempt, GRACE_SECONDS)

    def _work(self, effect: Effect) -> Coroutine[Any, Any, list[SessionEvent]] | None:
        performer, state, calls = self._known(), self.entity.state, self.entity.prompt.calls
        match effect:
            case RecoverTool():
                name = CallName(
                    self.entity.stream,
                    effect.key,
                    effect.attempt,
                    effect.runner,
                    self.entity.epoch,
                )
                return performer.recover_tool(name, effect.effect)
            case AskApproval():
                return performer.ask(effect, calls[effect.effect], state, self.entity.epoch)
            case ReconcileTool():
                call = state.call(effect.effect)
                assert call is not None, "what is due is in the state"
                order = performer.order(
                    effect.effect,
                    effect.attempt,
                    calls[effect.effect],
                    runner="",
                    epoch=self.entity.epoch,
                    digest=call.digest,
                )
                return performer.reconcile(order)
            case CloseApproval():
                return performer.close(effect) if self._closes(effect) else None
            case Cancel():
                grace = 0.0 if effect.effect.endswith(".m") else GRACE_SECONDS
                self._begin_cancel(effect.effect, effect.attempt, grace)
                return None
            case _:
                return None

    def _closes(self, effect: CloseApproval) -> bool:
        """Whether the approval ends now: superseded, or over time with the inbox read since."""
        if effect.superseded_by is not None:
            return True
        if self._parts.clock.now() < effect.deadline_at:
            return False
        if self._read_at < effect.deadline_at:
            # A decision that the log recorded before the deadline counts, even
            # if nobody has read it yet: read to the end, hand over, then expire.
            self.nudge()
            return False
        return True

    def _begin_cancel(self, effect: str, attempt: int, grace: float) -> None:
        if (effect, attempt) not in self._cancelled:
            self._cancelled.add((effect, attempt))
            self._do(f"c:{effect}", self._cancel(effect, grace))

    async def _cancel(self, effect: str, grace: float) -> list[SessionEvent]:
        if grace:
            await self._parts.clock.sleep(grace)
        kind = "m" if effect.endswith(".m") else "t"
        task = self._hand.get(f"{kind}:{effect}")
        if kind == "m" and task is not None:
            task.cancel()
        call = self.entity.state.call(effect)
        if kind == "t" and call is not None and call.runner is not None:
            port = self._parts.runners.find(call.runner)
            if port is not None:
                key = f"{self.entity.stream}/{effect}"
                await port.cancel(
                    CallName(self.entity.stream, key, call.attempt, call.runner, self.entity.epoch)
                )
        return []

    def _do(self, hand: str, work: Coroutine[Any, Any, list[SessionEvent]]) -> None:
        task = asyncio.create_task(work)
        self._hand[hand] = task
        task.add_done_callback(lambda done: self._done(hand, done))

    def _done(self, hand: str, task: asyncio.Task[list[SessionEvent]]) -> None:
        del self._hand[hand]
        self._wake.set()
        if task.cancelled():
            return
        if (error := task.exception()) is not None:
            self._broken = error
        else:
            self._outcomes.extend(task.result())

    async def _next(self) -> list[SessionEvent]:
        """Wait for an outcome, a nudge or a deadline, and return the outcomes."""
        timer = self._timer()
        try:
            await self._wake.wait()
        finally:
            if timer is not None:
                timer.cancel()
        self._wake.clear()
        outcomes, self._outcomes = self._outcomes, []
        outcomes += self._breakage()
        return [*outcomes, *self._deadline(self._parts.clock.now())]

    def _breakage(self) -> list[SessionEvent]:
        """Return what is recorded of an effect that ended as nobody expected."""
        broken, self._broken = self._broken, None
        if broken is None:
            return []
        if isinstance(broken, FencedError | StaleOrderError):
            raise broken
        why = f"error: {type(broken).__name__}: {broken}"
        return [self._known().clean(SessionWaiting(kind="operator", why=why))]

    def _timer(self) -> asyncio.Task[None] | None:
        moment = wake_at(self.entity.state)
        if moment is None:
            return None
        seconds = (moment - self._parts.clock.now()).total_seconds()
        if seconds <= 0 and self._hand:
            return None
        return asyncio.create_task(self._ring(max(seconds, 0.0)))

    async def _ring(self, seconds: float) -> None:
        await self._parts.clock.sleep(seconds)
        self._wake.set()

    def _deadline(self, now: datetime) -> list[SessionEvent]:
        moment = wake_at(self.entity.state)
        if moment is None or moment > now:
            return []
        waited = self.entity.state.runner_wait
        self._no_runner = waited is not None and waited <= now
        return [SessionContinued(by="deadline", at=now)]

    def _known(self) -> Performer:
        assert self._performer is not None, "the agent is known once the session has started"
        return self._performer


def _hand(effect: Effect) -> str:
    """Return the name under which an effect is in hand; a call is so however it got there."""
    match effect:
        case CallModel(effect=name):
            return f"m:{name}"
        case RunTool(effect=name) | RecoverTool(effect=name) | ReconcileTool(effect=name):
            return f"t:{name}"
        case AskApproval(effect=name):
            return f"a:{name}"
        case CloseApproval(approval=name):
            return f"x:{name}"
        case Cancel(effect=name):
            return f"c:{name}"
