"""What follows from the state of a session without anything from outside.

`following` is asked after every fact, live and after a replay; so every
inner prefix of a log goes on (I13).
"""

from datetime import datetime

from cueline.deciders import prompt
from cueline.deciders.session.evolve import evolve
from cueline.deciders.session.state import Call, ModelCall, SessionState, Status, Wait
from cueline.events.session import (
    ApprovalResolved,
    ModelRequested,
    SessionCompleted,
    SessionContinued,
    SessionEvent,
    SessionFailed,
    SessionIdle,
    SessionStopped,
    SessionWaiting,
    ToolReconciled,
    ToolSkipped,
)

STEERED = "Skipped due to queued user message."
UNKNOWN_OUTCOME = (
    "The outcome of this call is unknown: its runner died while it ran. "
    "It may or may not have taken effect; find out before you repeat it."
)


def following(state: SessionState) -> list[SessionEvent]:
    """List the facts that follow from *state*, in order."""
    facts: list[SessionEvent] = []
    while (fact := _next(state)) is not None:
        facts.append(fact)
        state = evolve(state, fact)
    return facts


def _next(state: SessionState) -> SessionEvent | None:
    if state.finished or state.status is Status.CREATED:
        return None
    if state.stop is not None:
        return _stopped(state)
    if (closing := _closing(state)) is not None:
        return closing
    if not state.hold and (onward := _onward(state)) is not None:
        return onward
    return _resting(state)


def _stopped(state: SessionState) -> SessionEvent | None:
    assert state.stop is not None
    in_flight = any(call.phase == "started" or call.asking for call in state.turn.calls)
    model = state.turn.model
    if in_flight or (model is not None and model.phase == "started"):
        return None
    return SessionStopped(by=state.stop.by, reason=state.stop.reason)


def _closing(state: SessionState) -> SessionEvent | None:
    """Close a call that will not be run, or whose outcome is told as unknown."""
    for call in state.open_calls:
        if call.approval is not None and call.approval.answer is not None:
            answer = call.approval.answer
            return ApprovalResolved(
                approval=call.approval.id, verdict=answer.verdict, by=answer.by, note=answer.note
            )
        if call.asking:
            continue
        if call.phase == "in_doubt":
            if told := _told_in_doubt(state, call):
                return told
        elif call.phase in ("requested", "retry"):
            if call.problem is not None:
                return ToolSkipped(effect=call.effect, reason=call.problem)
            if state.steered:
                return ToolSkipped(effect=call.effect, reason=STEERED)
    return None


def _told_in_doubt(state: SessionState, call: Call) -> ToolReconciled | None:
    if call.ruling is not None:
        by = call.ruling.by
        if not call.ruling.happened:
            return ToolReconciled(effect=call.effect, outcome="did_not_happen", by=by)
        told = f"{by} confirmed that this call took effect; its output is not known."
        return ToolReconciled(effect=call.effect, outcome="happened", by=by, output=told)
    if call.declared == "reconcile" and not call.unclear:
        return None
    if state.agent.policy.in_doubt == "tell":
        by = "policy"
    elif state.steered:
        by = "steer"
    else:
        return None
    return ToolReconciled(effect=call.effect, outcome="unknown", by=by, output=UNKNOWN_OUTCOME)


def _onward(state: SessionState) -> SessionEvent | None:
    """Ask the model again, or end."""
    model = state.turn.model
    if model is not None:
        return _again(state, model)
    if state.open_calls:
        return None
    if state.status is Status.IDLE and not state.mail:
        return None
    return _after_turn(state)


def _again(state: SessionState, model: ModelCall) -> SessionEvent | None:
    if model.phase == "given_up":
        if model.fatal:
            return SessionFailed(kind=model.error.partition(":")[0], error=model.error)
        return SessionWaiting(kind="operator", why=f"error: {model.error}")
    if model.phase == "retry" and model.retry_at is None:
        return _request(state, model.effect, model.attempt + 1, steers_and_notes(state))
    return None


def steers_and_notes(state: SessionState) -> tuple[int, ...]:
    """Return the inbox versions of what the next model call is told in any case."""
    return tuple(mail.inbox_version for mail in state.mail if mail.lane != "followup")


def _after_turn(state: SessionState) -> SessionEvent:
    told = steers_and_notes(state)
    if not told and not state.turn.calls:
        told = tuple(mail.inbox_version for mail in state.mail)
        if not told:
            return _over(state)
    limit = state.agent.limits.max_turns
    if not told and state.turn.since_user >= limit:
        return SessionWaiting(kind="operator", why=f"limit: {limit} turns since the last message")
    return _request(state, f"{state.turn.number + 1}.m", 1, told)


def _over(state: SessionState) -> SessionEvent:
    assert state.setup is not None
    if state.setup.open:
        return SessionIdle(result=state.turn.answer)
    return SessionCompleted(result=state.turn.answer)


def _request(
    state: SessionState, effect: str, attempt: int, told: tuple[int, ...]
) -> ModelRequested:
    marks = state.marks
    digest = marks.digest
    results = dict(marks.results)
    for call in state.turn.calls:
        if call.effect in results:
            digest = prompt.chained(digest, results[call.effect])
    for mail in state.mail:
        if mail.inbox_version in told:
            for fingerprint in mail.fingerprints:
                digest = prompt.chained(digest, fingerprint)
    return ModelRequested(
        effect=effect,
        attempt=attempt,
        messages=told,
        digest=digest,
        prefix_digest=marks.requested,
    )


def _resting(state: SessionState) -> SessionEvent | None:
    """Rest when nothing is in hand; leave the rest when something is."""
    if state.status is Status.IDLE and not state.hold:
        return None
    wait = wait_of(state)
    if wait is None:
        return SessionContinued(by="work") if state.waiting is not None else None
    if state.waiting == wait:
        return None
    return SessionWaiting(kind=wait.kind, why=wait.why, deadline_at=wait.deadline_at)


def wait_of(state: SessionState) -> Wait | None:
    """Return what the session waits for; None while something is in hand."""
    if state.runner_wait is not None and not state.hold:
        return Wait("runner", "no runner can be reached", state.runner_wait)
    asking = [call.approval for call in state.turn.calls if call.approval and call.asking]
    deadlines: list[datetime] = [approval.deadline_at for approval in asking]
    if state.hold:
        if _in_flight(state) and not state.poisoned:
            return None
        return Wait("operator", state.hold, min(deadlines, default=None))
    if _in_hand(state):
        return None
    retries = _retries(state)
    deadlines += retries
    if asking:
        return Wait("approval", ", ".join(a.id for a in asking), min(deadlines))
    if retries:
        return Wait("retry", "a failed attempt is tried again", min(deadlines))
    return None


def _in_flight(state: SessionState) -> bool:
    model = state.turn.model
    if model is not None and model.phase == "started":
        return True
    return any(call.phase == "started" for call in state.turn.calls)


def _retries(state: SessionState) -> list[datetime]:
    times = [call.retry_at for call in state.open_calls if call.phase == "retry"]
    if state.turn.model is not None and state.turn.model.phase == "retry":
        times.append(state.turn.model.retry_at)
    return [moment for moment in times if moment is not None]


def _in_hand(state: SessionState) -> bool:
    """Whether the shell has something to do, or does it."""
    model = state.turn.model
    if model is not None and (
        model.phase in ("requested", "started") or (model.phase == "retry" and not model.rests)
    ):
        return True
    return any(_busy(state, call) for call in state.open_calls)


def _busy(state: SessionState, call: Call) -> bool:
    if call.asking:
        return state.steered
    if call.phase == "retry":
        return not call.rests
    if call.phase == "requested":
        return not call.allowed or startable(state, call)
    return True


def startable(state: SessionState, call: Call) -> bool:
    """Whether order allows the call to run now: what is not parallel runs alone."""
    earlier = [c for c in state.open_calls if c.effect != call.effect and _before(c, call)]
    if call.repeatable:
        return all(other.repeatable for other in earlier)
    return not earlier


def _before(other: Call, call: Call) -> bool:
    return int(other.effect.partition(".")[2]) < int(call.effect.partition(".")[2])
