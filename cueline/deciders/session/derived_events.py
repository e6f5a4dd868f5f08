"""The events that follow from a session's state without outside input.

`derived_events` is called after every fact, live and after a replay; so a session
continues from every prefix of a log (I13). `derived_events` terminates: each fact closes
one of finitely many calls and questions, or requests the model, waits or ends, after
which no event follows.
"""

from cueline.deciders import prompt
from cueline.deciders.approval import auto_approver
from cueline.deciders.session.budget import due_closings
from cueline.deciders.session.children import awaited
from cueline.deciders.session.current_agent import (
    agent_change,
    model_to_ask,
    next_turns,
    prefix_change,
)
from cueline.deciders.session.delegation import delegated_outcome, poll_outcome
from cueline.deciders.session.evolve import evolve
from cueline.deciders.session.failed_call import (
    circuit_open,
    degrades,
    fail_lost_call,
    resolve_in_doubt,
)
from cueline.deciders.session.judging import judge_edit
from cueline.deciders.session.limit import limit_reached_or_warned
from cueline.deciders.session.model_call import (
    compaction_request,
    context_compacted,
    was_too_long,
    window_used,
)
from cueline.deciders.session.permission import on_open
from cueline.deciders.session.plan_event import NOT_RUN, message_outcome, plan_event
from cueline.deciders.session.run import stop_failure
from cueline.deciders.session.state import LIVE, MAX_TAKEOVERS, SessionState, Stop
from cueline.deciders.session.turn import BreakerWait, Call, CallApproval, CallProblem, ModelCall
from cueline.deciders.session.wait import in_flight, wait_of, wake_at
from cueline.events.agent import answering
from cueline.events.codes import Cause
from cueline.events.fact import shared_fields
from cueline.events.session import (
    ApprovalResolved,
    CapabilityDegraded,
    ModelRequested,
    PromptPrefixChanged,
    SessionCompleted,
    SessionContinued,
    SessionEvent,
    SessionFailed,
    SessionIdle,
    SessionStopped,
    SessionWaiting,
    ToolSkipped,
)
from cueline.events.status import Status
from cueline.events.stream import is_compaction

STEERED = "Skipped due to queued user message."
_MAY_NOT_RUN = frozenset({"requested", "asked", "retry", "in_doubt"})
"""The phases in which a call may be closed before it runs or is retried."""


def derived_events(state: SessionState) -> list[SessionEvent]:
    """Return the events that follow from *state*, in order."""
    return with_derived_events(state)[0]


def with_derived_events(state: SessionState) -> tuple[list[SessionEvent], SessionState]:
    """Return the events that follow from *state*, and the state after them."""
    facts: list[SessionEvent] = []
    while (fact := _next_event(state)) is not None:
        facts.append(fact)
        state = evolve(state, fact)
    return facts, state


def _next_event(state: SessionState) -> SessionEvent | None:
    if state.status not in LIVE:
        return None
    if state.context.summary is not None:
        return context_compacted(state, state.context.summary)
    if state.turn.lacking and (degraded := _degraded_event(state)) is not None:
        return degraded
    for call in state.turn.awake:
        if call.approval is not None and (resolved := _resolve_event(state, call.approval)):
            return resolved
    if (state.children or state.ended) and (ended := delegated_outcome(state)) is not None:
        return ended
    if state.stop is not None:
        return _stop_event(state)
    if state.turn.awake and (told := message_outcome(state) or poll_outcome(state)) is not None:
        return told
    model = state.turn.model  # while the model call is open, there are no tool calls
    if (
        closing := _call_end_event(state) if model is None else _fail_event(state, model)
    ) is not None:
        return closing
    if state.limit_state.asked is not None:
        return state.limit_state.asked  # the ledger read it before the session did
    if state.chosen is not None and (changed := agent_change(state)) is not None:
        return changed
    if not (state.hold or state.unstarted) and (onward := _turn_event(state)) is not None:
        return onward
    return _wait_event(state)


def _degraded_event(state: SessionState) -> CapabilityDegraded | None:
    """Return the unrecorded `CapabilityDegraded` of the last model; None without one."""
    asked = answering(state.agent, state.turn.fallback)
    for capability in state.turn.lacking:
        if (capability, asked.provider, asked.model) not in state.degraded:
            return CapabilityDegraded(
                capability=capability, provider=asked.provider, model=asked.model
            )
    return None


def _resolve_event(state: SessionState, approval: CallApproval) -> ApprovalResolved | None:
    if approval.answer is not None:
        said = shared_fields(approval.answer, ApprovalResolved) | {"approval": approval.id}
        return judge_edit(state, ApprovalResolved(**said))
    if (
        state.agent.policy.auto_approve
        and approval.question == "may_it_run"
        and approval.granted is None
        and not approval.people_only
    ):
        return ApprovalResolved(
            approval=approval.id, verdict="granted", by=auto_approver(state.agent)
        )
    return None


def _stop_event(state: SessionState) -> SessionEvent | None:
    """Return the end of a stopped session, if no effect runs on a reachable runner."""
    assert state.stop is not None, "a session stops because somebody wants it to"
    for call in state.turn.awake:
        tired = state.takeovers >= MAX_TAKEOVERS and call.phase in ("started", "deferred")
        if tired or (call.phase == "started" and call.unreached):
            cause = Cause(code="runner_unreachable", runner=call.runner or "")
            return fail_lost_call(state, call, cause=cause, at=None)
    model = state.turn.model
    if (model is not None and model.phase == "started") or due_closings(state):
        return None
    open_calls = [c for c in state.turn.awake if in_flight(c) or c.asking or c.phase == "deferred"]
    if open_calls or awaited(state):
        return None
    match state.stop:
        case Stop(by=by, code="asked" | "call_denied" as code, reason=reason):
            return SessionStopped(by=by, code=code, reason=reason)
        case failing:
            return stop_failure(failing)


def _call_end_event(state: SessionState) -> SessionEvent | None:
    """Return the event that closes a call that will not run, or has no known outcome."""
    for call in state.turn.awake:
        if call.phase not in _MAY_NOT_RUN or (call.approval is not None and call.asking):
            continue
        if (closed := _skip_event(state, call)) is not None:
            return closed
    return None


def _skip_event(state: SessionState, call: Call) -> SessionEvent | None:
    if call.phase == "in_doubt":
        return resolve_in_doubt(state, call)
    if call.problem is not None:
        rule = call.judged.rule if call.judged.answer == "deny" else ""
        return ToolSkipped(effect=call.effect, reason=_not_run(call.problem), rule=rule)
    if state.steered:
        return ToolSkipped(effect=call.effect, reason=STEERED)
    if call.blocked_by_breaker is not None and on_open(state, call) == "fallback":
        reason = circuit_open(call.blocked_by_breaker.cause)
        return ToolSkipped(effect=call.effect, reason=reason, degraded=degrades(state, call))
    return None


def _not_run(problem: CallProblem) -> str:
    """Return the text for the model about a call that did not run."""
    match problem.code:
        case "judged":
            return problem.text
        case "rejected":
            return f"Action rejected by human operator{problem.text and f': {problem.text}'}"
        case "expired":
            return "Action rejected: approval timeout"
        case "tool_changed":
            return "The tool has changed since; nothing was run. Ask again, as the tool is now."
        case "step_failed":
            return NOT_RUN


def _fail_event(state: SessionState, model: ModelCall) -> SessionFailed | None:
    """Return the end of the session after a fatal model failure, also while it is paused."""
    if model.phase != "given_up" or not model.fatal or state.account.bills:
        return None
    assert model.error is not None, "what is given up has failed"
    return SessionFailed(kind=model.error.failure, message=model.error.message)


def _turn_event(state: SessionState) -> SessionEvent | None:
    """Return the next model request or the session's end, after the last call is settled."""
    if state.account.bills:
        return None
    if (paused := _breaker_pause_event(state)) is not None:
        return paused
    if state.progress is not None:
        return plan_event(state, state.progress)
    if state.turn.model is not None:
        return _retry_event(state, state.turn.model)
    if state.turn.awake or state.turn.delegated:
        return None
    return _after_turn(state)


def _breaker_pause_event(state: SessionState) -> SessionWaiting | None:
    """Return a pause for a person, if a breaker is open and the agent has `on_open = "pause"`."""
    model = state.turn.model
    for call in state.turn.awake:
        if call.blocked_by_breaker and on_open(state, call) == "pause":
            return _pause(state, call.blocked_by_breaker)
    if model is not None and model.blocked_by_breaker and state.agent.breaker.on_open == "pause":
        return _pause(state, model.blocked_by_breaker)
    return None


def _pause(state: SessionState, blocked_by_breaker: BreakerWait) -> SessionWaiting:
    until = wake_at(state)
    return SessionWaiting(kind="operator", cause=blocked_by_breaker.cause, deadline_at=until)


def _retry_event(state: SessionState, model: ModelCall) -> SessionEvent | None:
    too_long = was_too_long(state, model)
    fallback = model.fallback if too_long else model_to_ask(state, model)
    if fallback is None:
        if model.phase != "given_up" or model.error is None:
            return None
        return SessionWaiting(kind="operator", cause=model.error.cause)
    compacts = is_compaction(model.effect)
    if compacts and fallback != model.fallback:
        return _after_turn(state, fallback)  # the other model gets the whole prompt
    if (limited := limit_reached_or_warned(state, turns=False)) is not None:
        return limited
    if too_long or compacts:
        return compaction_request(state, model.attempt + 1 if compacts else 1, fallback)
    told = _steers_and_notes(state, state.turn.number)
    return _request(state, model.effect, model.attempt + 1, told, fallback)


def _steers_and_notes(state: SessionState, turn: int) -> tuple[int, ...]:
    """Return the inbox versions of steers and notes that the request of *turn* includes."""
    due = [mail for mail in state.mail if mail.turn <= turn]
    return tuple([mail.inbox_version for mail in due if mail.lane != "followup"])


def _after_turn(state: SessionState, instead: int | None = None) -> SessionEvent | None:
    """Return the next request, to the fallback *instead* if given, or first a compaction."""
    turn = state.turn
    told = _steers_and_notes(state, turn.number + 1)
    if not told and not turn.calls and not turn.unanswered:
        told = tuple([mail.inbox_version for mail in state.mail if mail.turn <= turn.number + 1])
        if not told:
            return _end_event(state)
    # A user's message restarts the count of turns.
    if (limited := limit_reached_or_warned(state, turns=not told)) is not None:
        return limited
    fallback = next_turns(state, told=bool(told)) if instead is None else instead
    if instead is None and window_used(state, fallback):
        return compaction_request(state, 1, fallback)
    return _request(state, f"{turn.number + 1}.m", 1, told, fallback)


def _end_event(state: SessionState) -> SessionEvent | None:
    """Return the end of the turn: the session is completed, or idle if it stays open."""
    if state.status is Status.IDLE or any(each.mode != "sync" for each in awaited(state)):
        return None
    assert state.setup is not None, "a session that runs was started"
    stays = state.setup.open or state.turn.number == state.setup.first_turn
    used = state.used
    return (SessionIdle if stays else SessionCompleted)(
        result=state.turn.answer,
        partial=state.partial,
        turns=used.turns,
        tokens=used.tokens,
        usd=used.usd,
    )


def _request(
    state: SessionState, effect: str, attempt: int, told: tuple[int, ...], fallback: int
) -> ModelRequested | PromptPrefixChanged:
    if (prefix := prefix_change(state, fallback)) is not None:
        return prefix
    digest = state.prompt_digests.digest
    results = dict(state.prompt_digests.results)
    for call in state.turn.calls:
        if call.effect in results:  # pragma: no branch - each call has a result once all are over
            digest = prompt.chain_digest(digest, results[call.effect])
    for mail in state.mail:
        if mail.inbox_version in told:
            for fingerprint in mail.fingerprints:
                digest = prompt.chain_digest(digest, fingerprint)
    for fingerprint in state.limit_state.notes:
        digest = prompt.chain_digest(digest, fingerprint)
    return ModelRequested(
        effect=effect,
        attempt=attempt,
        messages=told,
        digest=digest,
        prefix_digest=state.prompt_digests.requested,
        fallback=fallback,
    )


def _wait_event(state: SessionState) -> SessionEvent | None:
    """Return the start or end of a wait; a session without an effect to do waits."""
    wait = wait_of(state)
    if wait == state.waiting:
        return None
    if wait is None:
        return SessionContinued(by="work")
    unreached = tuple(call.effect for call in state.turn.awake if call.unreached)
    return SessionWaiting(
        kind=wait.kind,
        cause=wait.cause,
        deadline_at=wait.deadline_at,
        exhausted=wait.exhausted,
        effects=unreached if wait.kind in ("runner", "sandbox") and not state.queued else (),
    )
