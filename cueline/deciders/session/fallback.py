"""Which of the agent's models is asked: its own, or one that stands in for it.

When a model's failure will not pass, the next of the agent's `fallback` is
asked, and stays the one that is asked until a user says something, or a person
resumes: then its own has another chance. A request that one model finds wrong
or too long may suit the next; what a model or a filter refused for what it
says is put to no other.
"""

from cueline.deciders.session.state import SessionState
from cueline.deciders.session.turn import ModelCall
from cueline.events.agent import answering
from cueline.events.cause import Cause
from cueline.events.session import PromptPrefixChanged


def next_fallback(state: SessionState, given_up: ModelCall) -> int | None:
    """Return which model is asked after one that was given up; None when it was the last."""
    following = given_up.fallback + 1
    return following if following <= len(state.agent.fallback) else None


def model_to_ask(state: SessionState, model: ModelCall) -> int | None:
    """Return which model the open call is put to now; None when to none, or it has been."""
    if model.phase == "given_up":
        return next_fallback(state, model)
    if model.blocked_by_breaker is not None:
        return next_fallback(state, model) if state.agent.breaker.on_open == "fallback" else None
    return model.fallback if model.phase == "retry" and model.retry_at is None else None


def next_turns(state: SessionState, *, told: bool) -> int:
    """Return which model a new turn asks; what a user says gives the agent's own a chance."""
    return 0 if told else state.turn.fallback


def model_change(state: SessionState, fallback: int) -> PromptPrefixChanged | None:
    """Say that another model is asked than last time; None when it is not, or was said."""
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
