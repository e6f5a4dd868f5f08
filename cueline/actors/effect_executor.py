"""Executes the effects of a session; each returns facts to record."""

import asyncio
import json
from collections.abc import Sequence
from contextlib import suppress
from functools import partial

from cueline.actors.agent_cache import LoadedAgent
from cueline.actors.approval_client import ApprovalClient, Circumstances, doubt_of, summary
from cueline.actors.approval_gate import ApprovalName
from cueline.actors.breaker_guard import AcquireProbe, BreakerGuard
from cueline.actors.budget_client import BudgetClient
from cueline.actors.entity import RETRY_SECONDS, Entity
from cueline.actors.fold import fold
from cueline.actors.host_dependencies import HostDependencies
from cueline.actors.model_caller import ModelCaller, sent_to
from cueline.actors.runner import CallName
from cueline.actors.runner_slots import SlotHolder
from cueline.actors.sandbox_client import SandboxClient
from cueline.actors.tool_caller import ToolCaller
from cueline.actors.tool_port import GivenInput, TaskOrder, ToolOrder
from cueline.deciders.approval import APPROVAL
from cueline.deciders.compaction import compaction_of
from cueline.deciders.session import SessionState
from cueline.deciders.session.due import (
    AskApproval,
    AttachSandbox,
    AwaitMessage,
    CallModel,
    Cancel,
    CloseApproval,
    CloseReservation,
    Effect,
    NotifyPeople,
    PollTask,
    ReconcileTool,
    RecoverTool,
    ReserveBudget,
    RunTool,
    StartChild,
)
from cueline.deciders.session.permission import need_ended_by
from cueline.deciders.session.turn import Call, CallApproval
from cueline.errors import CuelineError, FencedError
from cueline.events.agent import Hook, ToolSpec, answering
from cueline.events.approval import ApprovalOpened
from cueline.events.codes import NO_OLD_MESSAGES, Cause
from cueline.events.event_text import rationale_text
from cueline.events.fact import json_or_text
from cueline.events.message import ToolCall
from cueline.events.session import (
    Cut,
    PeopleNotified,
    SessionEvent,
    SessionWaiting,
    TellCode,
    ToolAsked,
    ToolDeferred,
    ToolFailed,
    ToolReturned,
)
from cueline.events.stream import is_compaction, shown
from cueline.events.trace import call_place, span_id, trace_id, traceparent


def hook_payload(
    session: str, hook: Hook, call: Call, asked: ToolCall, opened: ApprovalOpened | None
) -> bytes:
    """Return the JSON input of a hook; *call* has no secrets.

    *opened* is the approval of the call, if a person is asked.
    """
    judged = opened or call.judged
    news: dict[str, object] = {
        "on": hook.on,
        "session": shown(session),
        "effect": call.effect,
        "tool": asked.name,
        "summary": summary(asked),
        "arguments": asked.arguments,
        "digest": call.digest,
        "rule": judged.rule,
        "usd": None if judged.usd is None else str(judged.usd),
    }
    if opened is not None and call.approval is not None:
        news |= {
            "approval": call.approval.id,
            "question": opened.question,
            "preview": opened.preview,
            "why": rationale_text(opened),
            "votes_needed": opened.votes,
            "escalated": call.approval.escalated,
            "deadline_at": opened.deadline_at.isoformat(),
            "auto_at": None if opened.auto_at is None else opened.auto_at.isoformat(),
        }
    return json.dumps(news, ensure_ascii=False).encode()


LONGEST_PAUSE_SECONDS = 60.0
"""The longest wait between retries of an effect that keeps failing."""
_FIRST_PAUSE = RETRY_SECONDS / 2
Facts = Sequence[SessionEvent]


class EffectExecutor:
    """Executes the effects of one session; the caller records the facts."""

    __slots__ = (
        "_dependencies",
        "_entity",
        "_guard",
        "_loaded_agent",
        "_model",
        "_pause",
        "_slots",
        "_tools",
    )

    def __init__(
        self,
        entity: Entity,
        loaded_agent: LoadedAgent,
        dependencies: HostDependencies,
        guard: BreakerGuard,
        slots: SlotHolder,
    ) -> None:
        self._entity = entity
        self._slots = slots
        self._loaded_agent = loaded_agent
        self._dependencies = dependencies
        self._guard = guard
        self._model = ModelCaller(entity.stream, loaded_agent, dependencies)
        self._tools = ToolCaller(entity, loaded_agent, dependencies)
        self._pause = _FIRST_PAUSE

    async def carry_out(self, effect: Effect | AcquireProbe) -> Facts:
        """Execute *effect* and return its facts, also when it fails.

        Raises:
            FencedError: another process owns the session now.
            Exception: a rule of the ledger or the gate raised; the session is paused.
        """
        try:
            while True:
                try:
                    # Report an unreachable log; retry other temporary errors silently.
                    return await self._entity.patiently(partial(self._execute_once, effect))
                except FencedError:
                    raise
                except CuelineError as error:
                    if not error.retryable:
                        return await self._given_up(effect, error)
                    await self._dependencies.clock.sleep(RETRY_SECONDS)
                except Exception as error:
                    if not isinstance(effect, CallModel | RunTool | RecoverTool | NotifyPeople):
                        raise  # no call began, so the effect stays due
                    return await self._given_up(effect, error)
        finally:
            if isinstance(effect, RunTool | RecoverTool):
                self._slots.free(effect.effect)

    async def _execute_once(  # noqa: C901, PLR0911, PLR0912 - one case per effect is a table, not a maze
        self, effect: Effect | AcquireProbe
    ) -> Facts:
        prompt = self._entity.prompt
        match effect:
            case CallModel():
                return await self._report_to_breakers(effect, await self._ask_model(effect))
            case RunTool():
                return await self._report_to_breakers(
                    effect, await self._tools.run(self._order(effect))
                )
            case AttachSandbox():
                return [await self._sandbox().attach(effect)]
            case ReserveBudget():
                messages, _ = self._sent(effect) or (prompt.messages, None)
                return await self._payer().reserve(effect, messages)
            case CloseReservation(bill=bill):
                return [await self._payer().close(bill)]
            case RecoverTool():
                name = self.name(effect.effect, effect.attempt, effect.runner)
                tool = self._tool(effect)
                self._slots.take(effect.effect, effect.runner, tool)
                recovered = await self._tools.recover(name, tool)
                return await self._report_to_breakers(effect, recovered)
            case ReconcileTool():
                return [await self._tools.reconcile(self._order(effect))]
            case PollTask():
                return [await self._tools.poll(self._order(effect))]
            case AskApproval():
                return await self._ask(effect)
            case CloseApproval():
                return await self._asker().close(effect)
            case NotifyPeople():
                return [await self._notify_people(effect)]
            case Cancel():
                await self._tools.cancel(self.name(effect.effect, effect.attempt))
                return []
            case AcquireProbe():
                return await self._guard.probe(effect)
            case StartChild() | AwaitMessage():
                raise AssertionError("its fact is all of it")

    def _payer(self) -> BudgetClient:
        return BudgetClient(self._entity, self._loaded_agent, self._dependencies)

    def _asker(self) -> ApprovalClient:
        return ApprovalClient(self._entity.stream, self._loaded_agent, self._dependencies)

    def _sandbox(self) -> SandboxClient:
        return SandboxClient(self._entity, self._loaded_agent, self._dependencies)

    async def _ask_model(self, effect: CallModel) -> SessionEvent:
        state = self._entity.state
        if (sent := self._sent(effect)) is None:
            return self._model.failed(effect, NO_OLD_MESSAGES, "there is nothing to summarise")
        messages, cut = sent
        limited = state.limited
        outcome = await self._model.call(effect, state.turn.number, messages, cut)
        # If the ledger reserved budget, it settles the call, also at an unknown cost.
        with suppress(Exception):  # an outcome is recorded in any case
            return outcome if limited else self._model.estimated(effect, outcome, messages)
        return outcome

    def _sent(self, effect: CallModel | ReserveBudget) -> tuple[Sequence[bytes], Cut | None] | None:
        """Return the messages of a model call, and the cut if the call summarises.

        Returns None if there is nothing to summarise.
        """
        state, prompt = self._entity.state, self._entity.prompt
        messages: Sequence[bytes] = prompt.messages
        cut, model = None, answering(state.agent, effect.fallback)
        if is_compaction(effect.effect):
            too_long, window = state.turn.unanswered, model.context_window
            compaction = compaction_of(prompt, too_long=too_long, window=window)
            if compaction is None:
                return None
            messages, cut = compaction.messages, compaction.cut
        return sent_to(model, messages), cut

    async def _ask(self, effect: AskApproval) -> Facts:
        ended_by = need_ended_by(self._entity.state, effect.effect)
        if ended_by is None:
            call = self._entity.prompt.calls[effect.effect]
            return await self._asker().ask(effect, call, self._circumstances(effect.effect))
        # An earlier attempt may have opened it and lost the answer.
        now = self._dependencies.clock.now()
        return await self._asker().close(
            CloseApproval(effect.effect, effect.approval, now, superseded_by=ended_by)
        )

    def _circumstances(self, effect: str) -> Circumstances:
        state = self._entity.state
        call = state.call(effect)
        assert call is not None, "what is due is in the state"
        assert state.setup is not None, "a call belongs to a session that was started"
        return Circumstances(
            call.judged,
            self._entity.epoch,
            state.setup.asked_by,
            call.escalated,
            doubt=doubt_of(call),
            requests=call.input.requests if call.input and call.unanswered else (),
            held=call.input.requests[0].message if call.holds and call.input else "",
        )

    async def _report_to_breakers(self, effect: Effect, outcome: SessionEvent) -> Facts:
        """Report *outcome* to the breakers; return it even if that fails."""
        with suppress(asyncio.CancelledError, Exception):
            target = self._guard.target_of(effect, self._entity.state)
            if target is not None:
                await self._guard.record_outcome(target, outcome)
        return [outcome]

    async def _notify_people(self, effect: NotifyPeople) -> PeopleNotified:
        """Run a hook and return whether it succeeded; the session continues in any case."""
        state = self._entity.state
        call = state.call(effect.effect)
        asked = self._entity.prompt.calls.get(effect.effect)
        hook = self._loaded_agent.agent.policy.hooks[effect.hook]
        code: TellCode = "call_over"
        problem: str | None = None
        if call is not None and call.approval is not None and self._is_overdue(call.approval):
            code = "question_over"
        elif call is not None and asked is not None:
            opened = await self._recorded_approval(call)
            news = hook_payload(state.stream, hook, call, asked, opened)
            problem = await self._dependencies.tell(self._loaded_agent.agent, hook, news)
            code = "told" if problem is None else "hook_failed"
        return self._notification(effect, code, problem or "")

    async def _recorded_approval(self, call: Call) -> ApprovalOpened | None:
        """Return the approval of *call* from the gate's record; None without an approval."""
        if call.approval is None:
            return None
        stream = ApprovalName(self._entity.stream, call.approval.id).stream
        asked, _ = await fold(self._loaded_agent.journal, stream, APPROVAL, APPROVAL.initial_state)
        return asked.opened

    def _is_overdue(self, asked: CallApproval) -> bool:
        """Whether the deadline passed before the hook could run."""
        return asked.granted is None and asked.closes_at <= self._dependencies.clock.now()

    def _notification(self, effect: NotifyPeople, code: TellCode, problem: str) -> PeopleNotified:
        told = PeopleNotified(
            effect=effect.effect,
            approval=effect.approval,
            hook=effect.hook,
            code=code,
            problem=problem,
            at=self._dependencies.clock.now(),
        )
        return self._loaded_agent.clean(told)

    def name(self, effect: str, attempt: int, runner: str = "") -> CallName:
        """Return the name of the call for *runner*, by default for the runner that has the call."""
        call = None if runner else self._entity.state.call(effect)
        has_it = call.runner if call is not None and call.runner is not None else runner
        stream = self._entity.stream
        return CallName(stream, f"{stream}/{effect}", attempt, has_it, self._entity.epoch)

    def to_forget(self, facts: Sequence[SessionEvent], after: SessionState) -> list[CallName]:
        """Return the calls that runners can forget once *facts* are recorded.

        These are the calls that *facts* end. If the turn ends, too, each runner gets
        the name of a call of the next turn, and forgets all earlier calls.
        """
        turn = self._entity.state.turn
        if after.finished or after.turn.number > turn.number:
            runners = {call.runner for call in turn.calls if call.runner is not None}
            return [self.name(f"{turn.number + 1}.m", 0, runner) for runner in runners]
        return [
            self.name(fact.effect, fact.attempt)
            for fact in facts
            if isinstance(fact, ToolReturned | ToolAsked | ToolDeferred | ToolFailed)
        ]

    def _tool(self, effect: RecoverTool) -> ToolSpec:
        call = self._entity.state.call(effect.effect)
        assert call is not None, "what is due is in the state"
        return self._loaded_agent.tools[call.tool]

    def _order(self, effect: RunTool | ReconcileTool | PollTask) -> ToolOrder:
        call = self._entity.state.call(effect.effect)
        assert call is not None, "what is due is in the state"
        asked = self._entity.prompt.calls[effect.effect]
        agent = self._loaded_agent.agent
        tool = self._loaded_agent.tools[asked.name]
        server = agent.mcp.get(tool.server) if agent.mcp else None
        return ToolOrder(
            session=self._entity.stream,
            effect=effect.effect,
            attempt=effect.attempt,
            key=effect.key,
            runner=(call.runner or "") if isinstance(effect, RunTool) else "",
            epoch=self._entity.epoch,
            tool=tool.for_call(effect.effect, asked.arguments),
            arguments=asked.arguments,
            workspace=agent.workspace,
            digest=call.digest,
            secrets=agent.secrets,
            environment=agent.environment,
            isolation=agent.isolation,
            server=server,
            given=self._given(call),
            task=self._task(call) if isinstance(effect, PollTask) else None,
            sandbox=self._sandbox().place(tool) if agent.sandbox is not None else None,
            called_before=server is not None and self._has_called(tool.server),
            traceparent=self._traceparent(effect),
        )

    def _traceparent(self, effect: RunTool | ReconcileTool | PollTask) -> str:
        setup, stream = self._entity.state.setup, self._entity.stream
        assert setup is not None, "a session with effects was started"
        log = self._loaded_agent.journal.store.log_id
        trace = trace_id(log, setup.family.root or stream, setup.traceparent)
        return traceparent(trace, span_id(log, stream, call_place(effect.effect, effect.attempt)))

    def _given(self, call: Call) -> GivenInput | None:
        """Return a person's answer to what the call asked for; None without an answer."""
        if call.input is None or call.input.answer is None:
            return None
        state = self._dependencies.unseal(call.input.state)
        answer = json_or_text(call.input.answer)
        if not isinstance(answer, dict):
            answer = {call.input.requests[0].key: answer}
        return GivenInput(call.input.digest, answer, state)

    def _task(self, call: Call) -> TaskOrder:
        assert call.task is not None, "a deferred call has a task"
        over = call.task.deadline_at <= self._dependencies.clock.now()
        unneeded = over or self._entity.state.stop is not None
        return TaskOrder(self._dependencies.unseal(call.task.state), unneeded)

    def _has_called(self, server: str) -> bool:
        """Whether the model called a tool of *server* in an earlier turn, as it remembers."""
        name = f'"name":"{server}__'.encode()
        return any(name in message for message in self._entity.prompt.messages[-2::-1])

    async def _given_up(self, effect: Effect | AcquireProbe, error: Exception) -> Facts:
        fact = self._broken(effect, error)
        if fact.type == "SessionWaiting":
            # An effect that this fact does not end stays due, and is retried with growing waits.
            self._pause = min(2 * self._pause, LONGEST_PAUSE_SECONDS)
            await self._dependencies.clock.sleep(self._pause)
        return [fact]

    def _broken(self, effect: Effect | AcquireProbe, error: Exception) -> SessionEvent:
        """Return the fact for an effect that ended with an unexpected error."""
        told = f"{type(error).__name__}: {error}"
        match effect:
            case CallModel():
                return self._model.failed(effect, "unknown", told)
            case RunTool() | RecoverTool():
                # The call was started, and its outcome will never be known.
                return self._tools.failed(self.name(effect.effect, effect.attempt), "lost", told)
            case NotifyPeople():
                return self._notification(effect, "hook_failed", told)
            case _:
                cause = Cause(code="unexpected_error", message=told)
                return self._loaded_agent.clean(SessionWaiting(kind="operator", cause=cause))
