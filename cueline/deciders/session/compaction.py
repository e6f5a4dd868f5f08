"""When the oldest messages become a summary, and what follows from it.

The summary is the reply of an ordinary model call, `<turn>.c`, with its own attempts,
reservation and cost. It is requested when the last call took `compact_at` of the model's
context window, before the next request; or after a prompt was too long, before the same
messages are sent again in a new turn. If it fails, the session goes on without it.
"""

from msgspec.structs import replace

from cueline.deciders import prompt
from cueline.deciders.session.fallback import break_prefix
from cueline.deciders.session.state import ContextUse, PendingSummary, SessionState
from cueline.deciders.session.turn import ModelCall
from cueline.events.agent import answering
from cueline.events.message import Usage
from cueline.events.session import ContextCompacted, ModelReplied, ModelRequested

_STEP = 20
"""After a compaction in vain, the next comes when another 1/20 of the window is used."""


def window_used(state: SessionState, fallback: int) -> bool:
    """Whether the model has to summarise before it gets the next request."""
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
    """Return the request for a summary."""
    return ModelRequested(
        effect=f"{state.turn.number}.c",
        attempt=attempt,
        digest=state.prompt_digests.digest,
        prefix_digest="",
        fallback=fallback,
    )


def context_compacted(state: SessionState, summary: PendingSummary) -> ContextCompacted:
    """Return the event that follows a summary."""
    return ContextCompacted(
        effect=summary.effect,
        cut=summary.cut,
        reason="too_long" if state.turn.unanswered else "window",
        tokens=state.context.tokens,
        digest=prompt.chain_digest(state.prompt_digests.digest, summary.fingerprint),
    )


def compacted(state: SessionState, event: ContextCompacted) -> SessionState:
    """Let the prompt begin with the summary."""
    state = break_prefix(state, "compacted")
    digests = replace(state.prompt_digests, digest=event.digest)
    return replace(state, prompt_digests=digests, context=ContextUse(last="compacted"))


def with_summary(context: ContextUse, event: ModelReplied) -> ContextUse:
    """Return *context* with the summary of a reply."""
    assert event.cut is not None, "a compaction cuts"
    said = prompt.fingerprint(prompt.summary_message(event))
    return replace(context, summary=PendingSummary(event.effect, said, event.cut))


def without_summary(state: SessionState) -> ContextUse:
    """Return the context after a compaction failed for good."""
    return replace(state.context, floor=_next_floor(state, state.context.tokens), last="failed")


def after_reply(state: SessionState, usage: Usage) -> ContextUse:
    """Return the context after the reply of a turn."""
    tokens, context = usage.sent + usage.output, state.context
    if not tokens and not context.last:
        return replace(context, tokens=0) if context.tokens else context
    left = context.last == "compacted"
    return ContextUse(tokens, _next_floor(state, tokens) if left else context.floor)


def _next_floor(state: SessionState, tokens: int) -> int:
    window = answering(state.agent, state.turn.fallback).context_window or 0
    return tokens + window // _STEP
