"""The state changes of start, fork, wait, continuation, takeover and end."""

from datetime import datetime

from msgspec.structs import replace

from cueline.deciders import prompt
from cueline.deciders.plan_progress import progress_of
from cueline.deciders.session.budget import (
    account_of_lost_call,
    account_of_unstarted,
    with_budget_wait,
)
from cueline.deciders.session.call import with_result_digest
from cueline.deciders.session.children import stop_overdue, stopping
from cueline.deciders.session.current_agent import break_prefix
from cueline.deciders.session.limit import advance_wall_clock
from cueline.deciders.session.limit_state import LimitState
from cueline.deciders.session.run import queue_passed, run_state, start_passed
from cueline.deciders.session.sandbox import without_sandbox
from cueline.deciders.session.state import (
    MAX_TAKEOVERS,
    ROOT,
    PendingMessage,
    PromptDigests,
    SessionHold,
    SessionState,
    Setup,
    TreePlace,
    Wait,
)
from cueline.deciders.session.turn import BreakerWait, BudgetWait, Call, ModelCall, RunnerWait, Turn
from cueline.events.agent import AgentSpec
from cueline.events.codes import Cause
from cueline.events.session import (
    SessionContinued,
    SessionForked,
    SessionStarted,
    SessionTakenOver,
    SessionWaiting,
)
from cueline.events.status import Status


def session_started(state: SessionState, event: SessionStarted) -> SessionState:
    """Return *state* of a started session; a session with a plan is at once in its only turn."""
    plan = event.agent.plan
    return replace(
        state,
        status=Status.RUNNING,
        setup=_setup(event, first_turn=0),
        turn=Turn(number=0 if plan is None else 1),
        progress=None if plan is None else progress_of(plan, event.parameters),
        mail=_first_messages(event, ()) if plan is None else (),
        prompt_digests=PromptDigests(digest=prompt.opening_digest(event.agent)),
        limit_state=_limit_state(event),
        inbox_read=1,
        run=run_state(event.run),
        schedule=event.schedule,
    )


def session_forked(state: SessionState, event: SessionForked) -> SessionState:
    """Return *state* of a fork of another session's history, without effects in flight.

    The fork keeps messages that the model has not seen, and reads them first.
    """
    prompt_digests = _forked_prefix(state, event.agent).prompt_digests
    for call in state.open_calls:
        prompt_digests = with_result_digest(
            replace(state, prompt_digests=prompt_digests), call, prompt.FORKED_AWAY, failed=True
        )
    calls = tuple(
        replace(call, phase="closed", approval=None, retry_at=None, reach=None)
        for call in state.turn.calls
    )
    return SessionState(
        stream=state.stream,
        status=Status.RUNNING,
        setup=_setup(event, first_turn=state.turn.number),
        turn=replace(
            state.turn.with_calls(calls), model=None, since_user=0, active_seconds=0.0, fallback=0
        ),
        mail=_first_messages(event, state.mail),
        prompt_digests=prompt_digests,
        limit_state=_limit_state(event),
        inbox_read=1,
        partial=state.partial,
        context=state.context,
    )


def _forked_prefix(state: SessionState, agent: AgentSpec) -> SessionState:
    if state.turn.fallback:
        return break_prefix(state, "fallback_returned")
    if not state.prompt_digests.requested:
        return state
    same = prompt.opening_digest(agent) == prompt.opening_digest(state.agent)
    return state if same else break_prefix(state, "forked_with_another_agent")


def _limit_state(event: SessionStarted | SessionForked) -> LimitState:
    limits = event.agent.limits
    later = isinstance(event, SessionStarted) and event.schedule is not None
    began_at = None if limits.max_wall_seconds is None or later else event.at
    return LimitState(limits=limits, began_at=began_at, seen_at=began_at)


def _setup(event: SessionStarted | SessionForked, first_turn: int) -> Setup:
    limits, family = event.agent.limits, _tree_place(event)
    own = limits.max_tokens is not None or limits.max_cost is not None
    return Setup(
        agent=event.agent,
        open=event.open,
        attached=event.attached,
        tools={tool.name: tool for tool in event.agent.tools},
        limited=own or bool(family.allowances),
        asked_by=event.asked_by,
        traceparent=getattr(event, "traceparent", ""),
        first_turn=first_turn,
        family=family,
    )


def _tree_place(event: SessionStarted | SessionForked) -> TreePlace:
    """Return the session's place in its tree; a fork is the root of a new tree."""
    if isinstance(event, SessionForked) or event.parent is None:
        return ROOT
    return TreePlace(event.parent, event.root, event.depth, event.allowances, event.call)


def _first_messages(
    event: SessionStarted | SessionForked, waiting: tuple[PendingMessage, ...]
) -> tuple[PendingMessage, ...]:
    fingerprints = [fingerprint for mail in waiting for fingerprint in mail.fingerprints]
    fingerprints += map(prompt.fingerprint, prompt.opening_messages(event))
    return (PendingMessage(1, "note", tuple(fingerprints)),) if fingerprints else ()


def session_idle(state: SessionState) -> SessionState:
    """Return *state* of an idle session, which waits for messages."""
    left = without_sandbox(state)
    return replace(left, status=Status.IDLE, waiting=None, partial=False)


def session_waiting(state: SessionState, event: SessionWaiting) -> SessionState:
    """Wait."""
    rested = replace(
        without_sandbox(state),
        status=Status.STOPPING if state.stop else Status.WAITING,
        waiting=Wait(event.kind, event.cause, event.deadline_at, event.exhausted),
    )
    if event.kind == "budget":
        until = None if event.exhausted else event.deadline_at
        return with_budget_wait(rested, BudgetWait(event.cause, until))
    if event.kind == "operator" and not state.stop:
        return replace(rested, hold=state.hold or SessionHold(event.cause))
    if event.kind in ("runner", "sandbox") and event.deadline_at is not None:
        calls = tuple(_wait_for_runner(c, event, event.deadline_at) for c in state.turn.calls)
        return replace(rested, turn=state.turn.with_calls(calls))
    if event.kind == "task" and event.effects:
        call = state.call(event.effects[0])
        if call is not None and call.phase == "deferred":
            call = replace(call, attempt=call.attempt + 1, retry_at=event.deadline_at)
            rested = replace(rested, turn=state.turn.with_call(call), takeovers=0)
        return rested
    if event.kind == "breaker" and event.effects and event.deadline_at is not None:
        if event.reserved:
            rested = replace(rested, account=account_of_unstarted(state))
        return _block_by_breaker(rested, event.effects, BreakerWait(event.deadline_at, event.cause))
    return rested


def _block_by_breaker(
    state: SessionState, effects: tuple[str, ...], blocked_by_breaker: BreakerWait
) -> SessionState:
    turn, model = state.turn, state.turn.model
    if model is not None and model.effect in effects:
        model = replace(model, blocked_by_breaker=blocked_by_breaker, early=False)
    calls = tuple(
        replace(c, blocked_by_breaker=blocked_by_breaker, early=False)
        if c.effect in effects and c.phase != "closed"
        else c
        for c in turn.calls
    )
    return replace(state, turn=replace(turn.with_calls(calls), model=model))


def _wait_for_runner(call: Call, event: SessionWaiting, deadline_at: datetime) -> Call:
    if call.phase == "closed" or call.effect not in event.effects:
        return call
    until = call.reach.until if call.reach else deadline_at
    slot = event.cause if event.kind == "sandbox" else None
    return replace(call, reach=RunnerWait(until, "waiting", slot))


def session_continued(state: SessionState, event: SessionContinued) -> SessionState:
    """Return *state* after a wait; effects that are due may be retried."""
    by, at, model = event.by, event.at, state.turn.model
    if model is not None and _passed(model.retry_at, at):
        model = replace(model, retry_at=None, rests=False)
    if model is not None and model.room is not None and _passed(model.room.until, at):
        model = replace(model, room=None)
    if model is not None and _is_released(model.blocked_by_breaker, by, at):
        model = replace(model, blocked_by_breaker=None)
    calls = tuple(_without_passed_waits(call, by, at) for call in state.turn.calls)
    status = state.status
    if state.waiting is not None:
        status = Status.STOPPING if state.stop else Status.RUNNING
    goes_on = replace(
        state,
        status=status,
        turn=replace(state.turn.with_calls(calls), model=model),
        waiting=None,
    )
    goes_on = queue_passed(stop_overdue(start_passed(goes_on, at), at, event.waited), event)
    return advance_wall_clock(goes_on, at)


def _is_released(blocked_by_breaker: BreakerWait | None, by: str, at: datetime | None) -> bool:
    """Whether an effect that a breaker blocked may start.

    The breaker admits calls again, or the wait has ended.
    """
    return blocked_by_breaker is not None and (
        by == "breaker" or _passed(blocked_by_breaker.until, at)
    )


def _without_passed_waits(call: Call, by: str, at: datetime | None) -> Call:
    """Return *call* without the waits that have ended (I14)."""
    if _is_released(call.blocked_by_breaker, by, at):
        call = replace(call, blocked_by_breaker=None)
    if call.phase in ("awaiting", "deferred") and _passed(call.retry_at, at):
        return replace(call, retry_at=None)
    if call.phase == "retry" and _passed(call.retry_at, at):
        call = replace(call, phase="requested", retry_at=None, rests=False)
    if call.reach is not None and call.unreached:
        if _passed(call.reach.until, at):
            return replace(call, reach=RunnerWait(call.reach.until, "last_try"))
        if by == "runner":
            return replace(call, reach=RunnerWait(call.reach.until, "trying"))
    return call


def _passed(moment: datetime | None, at: datetime | None) -> bool:
    return moment is not None and at is not None and moment <= at


def session_taken_over(state: SessionState, event: SessionTakenOver) -> SessionState:
    """Return *state* in another host; a running model call counts as a lost attempt."""
    model = state.turn.model
    if model is not None and model.phase == "started":
        model = _lost(model)
    takeovers = state.takeovers + (_ran(state) and not event.handed_over)
    hold = state.hold
    if takeovers >= MAX_TAKEOVERS and not state.stop:
        hold = hold or SessionHold(Cause(code="hosts_died", times=takeovers))
    used = state.used
    for attempt in event.lost_attempts:
        used = used.after(None, attempt.cost)
    taken = replace(
        without_sandbox(state),
        used=used,
        turn=replace(state.turn, model=model),
        takeovers=takeovers,
        hold=hold,
        account=account_of_lost_call(state),
    )
    return advance_wall_clock(taken, event.at)


def _ran(state: SessionState) -> bool:
    """Whether a host ran a call of the session; a waiting call cannot crash its host."""
    model = state.turn.model
    if model is not None and model.phase == "started":
        return True
    return any(c.phase == "started" or c.polling or _reconciling(c) for c in state.turn.awake)


def _reconciling(call: Call) -> bool:
    return call.phase == "in_doubt" and call.reconciles


def _lost(model: ModelCall) -> ModelCall:
    return replace(model, phase="retry", retry_at=None, rests=False)


def session_ended(state: SessionState, status: Status) -> SessionState:
    """Return *state* of an ended session; its calls stay, because a fork needs their results."""
    over = replace(state.turn, model=None)
    return replace(
        state,
        status=status,
        turn=over,
        waiting=None,
        hold=None,
        stop=None,
        children=stopping(state.children),
    )
