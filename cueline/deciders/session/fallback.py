"""Which of the agent's models is called: its own, or a fallback.

After a permanent failure of a model, the next of the agent's `fallback` is called
from then on. A user's message or a resume returns to the agent's own model. A
request that is invalid or too long for one model may fit the next. A request
refused for its content is sent to no other model.
"""

from msgspec.structs import replace

from cueline.deciders.session.state import PrefixBreak, SessionState
from cueline.deciders.session.turn import ModelCall
from cueline.events.agent import answering
from cueline.events.cause import Cause
from cueline.events.session import PrefixReason, PromptPrefixChanged


def next_fallback(state: SessionState, given_up: ModelCall) -> int | None:
    """Return the model after the one that was given up; None after the last."""
    following = given_up.fallback + 1
    return following if following <= len(state.agent.fallback) else None


def model_to_ask(state: SessionState, model: ModelCall) -> int | None:
    """Return the model for the open call; None if there is none or it has been called."""
    if model.phase == "given_up":
        return next_fallback(state, model)
    if model.blocked_by_breaker is not None:
        return next_fallback(state, model) if state.agent.breaker.on_open == "fallback" else None
    return model.fallback if model.phase == "retry" and model.retry_at is None else None


def next_turns(state: SessionState, *, told: bool) -> int:
    """Return the model for a new turn; a user's message returns to the agent's own."""
    return 0 if told else state.turn.fallback


def break_prefix(state: SessionState, reason: PrefixReason) -> SessionState:
    """Return *state* before a change after which prompts begin differently.

    Of several changes before one request, the first is recorded.
    """
    digests = state.prompt_digests
    if not digests.requested or digests.broken is not None:
        return state
    broken = PrefixBreak(_name(state, state.turn.fallback), reason)
    return replace(state, prompt_digests=replace(digests, broken=broken))


def prefix_change(state: SessionState, fallback: int) -> PromptPrefixChanged | None:
    """Return the event of another beginning of the prompt; None if it is recorded already."""
    digests, last = state.prompt_digests, state.turn.fallback
    if not digests.requested or (digests.broken is None and fallback == last):
        return None
    broken = digests.broken or PrefixBreak(
        _name(state, last), "fallback_returned" if fallback < last else "fallback"
    )
    return PromptPrefixChanged(
        reason=broken.reason,
        before=broken.before,
        after=_name(state, fallback),
        cause=_cause(state),
    )


def _name(state: SessionState, fallback: int) -> str:
    agent = answering(state.agent, fallback)
    return f"{agent.provider} {agent.model}"


def _cause(state: SessionState) -> Cause | None:
    model = state.turn.model
    if model is not None and model.blocked_by_breaker is not None:
        return model.blocked_by_breaker.cause
    given_up = model is not None and model.phase == "given_up" and model.error
    return given_up.cause if given_up else None
