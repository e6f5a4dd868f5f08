"""The state of a session after it reads its inbox."""

from collections.abc import Iterable
from itertools import chain

from cueline.deciders.session.state import SessionState
from cueline.events.agent import AgentSpec
from cueline.events.inbox import (
    InboxMessage,
    MessageSent,
    PauseAsked,
    ResumeAsked,
    SecretsWaived,
    StopAsked,
)
from cueline.events.plan import PROCEDURE
from cueline.events.refusal import Refusal


def will_stop(state: SessionState, unread: Iterable[object]) -> bool:
    """Whether the session is stopping, or will be."""
    return state.stop is not None or any(isinstance(said, StopAsked) for said in unread)


def waived_secrets(state: SessionState, unread: Iterable[object]) -> set[str]:
    """Return the secrets that people waived."""
    before = () if state.setup is None else state.setup.waived
    said = [each.names for each in unread if isinstance(each, SecretsWaived)]
    return {*before, *chain.from_iterable(said)}


def will_be_held(state: SessionState, unread: Iterable[object]) -> bool:
    """Whether the session is paused, or will be."""
    said = [each for each in unread if isinstance(each, PauseAsked | ResumeAsked)]
    return isinstance(said[-1], PauseAsked) if said else state.hold is not None


def unheard(agent: AgentSpec, message: InboxMessage) -> Refusal | None:
    """Return why a session of *agent* does not hear *message*: it has no model, or no such wait."""
    if not isinstance(message, MessageSent):
        return None
    if agent.plan is not None and not message.name:
        if agent.provider == PROCEDURE:
            return Refusal(code="procedural_agent_no_resume")
        return Refusal(code="plan_takes_no_messages")
    waits = [] if agent.plan is None else [step.wait for step in agent.plan.steps]
    if message.name and message.name not in waits:
        return Refusal(code="no_such_wait", by=message.name)
    return None
