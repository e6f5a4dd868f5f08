"""The state changes of a model call's facts."""

from msgspec.structs import replace

from cueline.deciders import prompt
from cueline.deciders.retry import FATAL_MODEL, SUITS_ANOTHER, rests
from cueline.deciders.session.budget import account_after_call
from cueline.deciders.session.call import requested_call
from cueline.deciders.session.compaction import after_reply, with_summary, without_summary
from cueline.deciders.session.fallback import next_fallback
from cueline.deciders.session.limit import with_notes_delivered
from cueline.deciders.session.state import PromptDigests, SessionState, Status
from cueline.deciders.session.turn import LastFailure, ModelCall, Turn
from cueline.events.failure import NO_ANSWER
from cueline.events.message import TextBlock
from cueline.events.session import (
    UNJUDGED,
    ModelFailed,
    ModelReplied,
    ModelRequested,
    ModelStarted,
    calls_of,
)
from cueline.events.stream import is_compaction

_LONGEST_ERROR = 500
UNCOUNTED = frozenset({"lost", "cancelled"})
"""Failures that say nothing about the model."""


def model_requested(state: SessionState, event: ModelRequested) -> SessionState:
    """Begin a turn, or another attempt at it."""
    turn, told = state.turn, event.messages
    if is_compaction(event.effect):
        return _compaction_requested(state, event)
    again = turn.model is not None and turn.model.effect == event.effect
    since = 0 if told else turn.since_user
    return replace(
        state,
        status=Status.STOPPING if state.stop else Status.RUNNING,
        turn=Turn(
            number=turn.number if again else turn.number + 1,
            since_user=since if again else since + 1,
            active_seconds=turn.active_seconds,
            model=_requested(turn, event),
            fallback=event.fallback,
            unanswered=True,
        ),
        mail=tuple([m for m in state.mail if m.inbox_version not in told]) if told else state.mail,
        prompt_digests=PromptDigests(event.digest, event.digest),
        limit_state=with_notes_delivered(state.limit_state),
        waiting=None,
    )


def _requested(turn: Turn, event: ModelRequested) -> ModelCall:
    model, before = ModelCall(event.effect, event.attempt, "requested", event.fallback), turn.model
    if before is None or (before.effect, before.fallback) != (event.effect, event.fallback):
        return model
    return replace(
        model,
        failures=before.failures,
        failing_since=before.failing_since,
        silent=before.silent,
        early=before.early,
    )


def _compaction_requested(state: SessionState, event: ModelRequested) -> SessionState:
    """Begin a compaction: what the next request includes waits for it."""
    return replace(
        state,
        status=Status.STOPPING if state.stop else Status.RUNNING,
        turn=replace(state.turn, model=_requested(state.turn, event)),
        waiting=None,
    )


def model_started(state: SessionState, event: ModelStarted) -> SessionState:
    """Mark the model call as running."""
    if state.turn.model is None:
        return state
    granted = event.grant is not None
    model = replace(state.turn.model, phase="started", granted=granted, early=False)
    return replace(state, turn=replace(state.turn, model=model))


def model_replied(state: SessionState, event: ModelReplied) -> SessionState:
    """Add the reply and its requested calls; or a summary, until its own event."""
    if event.cut is not None:
        return _summary_replied(state, event)
    said = prompt.fingerprint(prompt.assistant_message(event))
    calls = tuple(
        [
            requested_call(state, effect, call, event.judged.get(effect, UNJUDGED))
            for effect, call in calls_of(event).items()
        ]
    )
    answer = ""
    if not calls:
        answer = "\n".join(block.text for block in event.content if isinstance(block, TextBlock))
    prompt_digests = state.prompt_digests
    return replace(
        state,
        turn=replace(
            state.turn.with_calls(calls),
            model=None,
            active_seconds=state.turn.active_seconds + event.seconds,
            unanswered=False,
            answer=answer,
            lacking=event.lacking,
        ),
        prompt_digests=replace(
            prompt_digests, digest=prompt.chain_digest(prompt_digests.digest, said)
        ),
        takeovers=0,
        account=account_after_call(state, event),
        used=state.used.after(event.usage, event.cost, turns=1),
        context=after_reply(state, event.usage),
    )


def _summary_replied(state: SessionState, event: ModelReplied) -> SessionState:
    active = state.turn.active_seconds + event.seconds
    return replace(
        state,
        turn=replace(state.turn, model=None, active_seconds=active),
        takeovers=0,
        account=account_after_call(state, event),
        used=state.used.after(event.usage, event.cost),
        context=with_summary(state.context, event),
    )


def model_failed(state: SessionState, event: ModelFailed) -> SessionState:
    """Record when the call is retried, or that it is given up."""
    model, used = state.turn.model, state.used.after(event.usage, event.cost)
    if model is None:
        return replace(state, used=used)
    counted = event.kind not in UNCOUNTED
    failed = replace(
        model,
        phase="retry" if event.retry_at or not counted else "given_up",
        failures=model.failures + counted,
        failing_since=(model.failing_since or event.failed_at) if counted else model.failing_since,
        retry_at=event.retry_at,
        rests=rests(event.failed_at, event.retry_at),
        error=LastFailure(event.kind, event.message[:_LONGEST_ERROR]),
        silent=model.silent or event.kind == NO_ANSWER,
        fatal=_fatal(state, model, event.kind),
    )
    active = state.turn.active_seconds + event.seconds
    context, open_call = state.context, failed if model else None
    if failed.phase == "given_up" and is_compaction(event.effect):
        context, open_call = without_summary(state), None
    return replace(
        state,
        turn=replace(state.turn, model=open_call, active_seconds=active),
        context=context,
        # Its host cancelled it and survived: it did not kill the host.
        takeovers=0 if event.kind == "cancelled" else state.takeovers,
        account=account_after_call(state, event),
        used=used,
    )


def _fatal(state: SessionState, model: ModelCall, kind: str) -> bool:
    """Whether the failure cannot be mended, not even with another model."""
    elsewhere = kind in SUITS_ANOTHER and next_fallback(state, model) is not None
    return kind in FATAL_MODEL and not elsewhere
