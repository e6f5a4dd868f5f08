"""Which of the agent's models is called: its own, or a fallback.

After a permanent failure of a model, the next of the agent's `fallback` is called
from then on. A user's message or a resume returns to the agent's own model. A
request that is invalid or too long for one model may fit the next. A request
refused for its content is sent to no other model.
"""

from cueline.deciders.session.state import SessionState
from cueline.deciders.session.turn import ModelCall
from cueline.events.agent import answering
from cueline.events.cause import Cause
from cueline.events.session import PromptPrefixChanged


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


def model_change(state: SessionState, fallback: int) -> PromptPrefixChanged | None:
    """Return the event of a change of model; None without a change, or if recorded already."""
    if not state.prompt_digests.requested or fallback == state.turn.fallback:
        return None
    before, after = (
        f"{agent.provider} {agent.model}"
        for agent in (answering(state.agent, n) for n in (state.turn.fallback, fallback))
    )
    return PromptPrefixChanged(before=before, after=after, cause=_cause(state))


def _cause(state: SessionState) -> Cause | None:
    model = state.turn.model
    if model is not None and model.blocked_by_breaker is not None:
        return model.blocked_by_breaker.cause
    return model.error if model is not None and model.phase == "given_up" else None
