"""The state changes of a model call's facts.

The summary is the reply of an ordinary model call, `<turn>.c`, with its own attempts,
reservation and cost. It is requested when the last call took `compact_at` of the model's
context window, before the next request; or after a prompt was too long, before the same
messages are sent again in a new turn. If it fails, the session continues without it.
"""

from msgspec.structs import replace

from cueline.deciders import prompt
from cueline.deciders.retry import FATAL_MODEL, SUITS_ANOTHER, rests
from cueline.deciders.session.budget import account_after_call
from cueline.deciders.session.call import requested_call
from cueline.deciders.session.current_agent import break_prefix, next_fallback
from cueline.deciders.session.limit import with_notes_delivered
from cueline.deciders.session.state import ContextUse, PendingSummary, PromptDigests, SessionState
from cueline.deciders.session.turn import LastFailure, ModelCall, Turn
from cueline.events.agent import answering
from cueline.events.codes import NO_ANSWER
from cueline.events.message import TextBlock, Usage
from cueline.events.session import (
    UNJUDGED,
    ContextCompacted,
    ModelFailed,
    ModelReplied,
    ModelRequested,
    ModelStarted,
    calls_of,
)
from cueline.events.status import Status
from cueline.events.stream import is_compaction

_STEP = 20
"""The divisor of the window: 1/20 of it has to be used before the next compaction."""


def window_used(state: SessionState, fallback: int) -> bool:
    """Whether so much of the window is used that a compaction comes before the next request."""
    agent, context = answering(state.agent, fallback), state.context
    if not agent.compact_at or agent.context_window is None:
        return False
    return context.tokens >= max(agent.compact_at * agent.context_window, context.floor, 1)


def was_too_long(state: SessionState, model: ModelCall) -> bool:
    """Whether the model gave up because the prompt is too long, and a summary may help."""
    given_up = model.phase == "given_up" and model.error is not None
    if not given_up or not state.agent.compact_at or state.context.last:
        return False
    if state.turn.number == 1:
        return False  # there is nothing old yet
    return model.error is not None and model.error.failure == "context_too_long"


def compaction_request(state: SessionState, attempt: int, fallback: int) -> ModelRequested:
    """Return the event that requests a summary from the model."""
    return ModelRequested(
        effect=f"{state.turn.number}.c",
        attempt=attempt,
        digest=state.prompt_digests.digest,
        prefix_digest="",
        fallback=fallback,
    )


def context_compacted(state: SessionState, summary: PendingSummary) -> ContextCompacted:
    """Return the `ContextCompacted` event for the model's *summary*."""
    return ContextCompacted(
        effect=summary.effect,
        cut=summary.cut,
        reason="too_long" if state.turn.unanswered else "window",
        tokens=state.context.tokens,
        digest=prompt.chain_digest(state.prompt_digests.digest, summary.fingerprint),
    )


def compacted(state: SessionState, event: ContextCompacted) -> SessionState:
    """Return *state* with a prompt that begins with the summary."""
    state = break_prefix(state, "compacted")
    digests = replace(state.prompt_digests, digest=event.digest)
    return replace(state, prompt_digests=digests, context=ContextUse(last="compacted"))


def with_summary(context: ContextUse, event: ModelReplied) -> ContextUse:
    """Return *context* with the summary in the reply *event*."""
    assert event.cut is not None, "a compaction cuts"
    said = prompt.fingerprint(prompt.summary_message(event))
    return replace(context, summary=PendingSummary(event.effect, said, event.cut))


def without_summary(state: SessionState) -> ContextUse:
    """Return the context use after a compaction failed without a further retry."""
    return replace(state.context, floor=_next_floor(state, state.context.tokens), last="failed")


def after_reply(state: SessionState, usage: Usage) -> ContextUse:
    """Return the context use after the reply of a turn."""
    tokens, context = usage.sent + usage.output, state.context
    if not tokens and not context.last:
        return replace(context, tokens=0) if context.tokens else context
    left = context.last == "compacted"
    return ContextUse(tokens, _next_floor(state, tokens) if left else context.floor)


def _next_floor(state: SessionState, tokens: int) -> int:
    window = answering(state.agent, state.turn.fallback).context_window or 0
    return tokens + window // _STEP


_LONGEST_ERROR = 500
UNCOUNTED = frozenset({"lost", "cancelled"})
"""The codes of failures that the model did not cause."""


def model_requested(state: SessionState, event: ModelRequested) -> SessionState:
    """Return *state* with a new turn, or with another attempt of the turn's model call."""
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
    """Return *state* with a compaction, which the next request waits for."""
    return replace(
        state,
        status=Status.STOPPING if state.stop else Status.RUNNING,
        turn=replace(state.turn, model=_requested(state.turn, event)),
        waiting=None,
    )


def model_started(state: SessionState, event: ModelStarted) -> SessionState:
    """Return *state* with a running model call."""
    if state.turn.model is None:
        return state
    granted = event.grant is not None
    model = replace(state.turn.model, phase="started", granted=granted, early=False)
    return replace(state, turn=replace(state.turn, model=model))


def model_replied(state: SessionState, event: ModelReplied) -> SessionState:
    """Return *state* with the reply and its calls, or with a summary."""
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
    """Return *state* with the time of the model call's retry, or with the call given up."""
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
        # The host cancelled the call and survived: the call did not kill the host.
        takeovers=0 if event.kind == "cancelled" else state.takeovers,
        account=account_after_call(state, event),
        used=used,
    )


def _fatal(state: SessionState, model: ModelCall, kind: str) -> bool:
    """Whether the failure *kind* ends the session, because no other model can help."""
    elsewhere = kind in SUITS_ANOTHER and next_fallback(state, model) is not None
    return kind in FATAL_MODEL and not elsewhere
