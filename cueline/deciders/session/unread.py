"""The state of a session after it reads its inbox."""

from collections.abc import Iterable
from itertools import chain

from cueline.deciders.session.state import SessionState
from cueline.events.agent import AgentSpec
from cueline.events.inbox import (
    InboxMessage,
    MessageSent,
    ModelChangeAsked,
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
    plan = agent.plan
    match message:
        case MessageSent(name=name) if name:
            if plan is None or name not in [step.wait for step in plan.steps]:
                return Refusal(code="no_such_wait", by=name)
        case MessageSent() | ModelChangeAsked() if plan is not None:
            procedure = agent.provider == PROCEDURE
            return Refusal(
                code="procedural_agent_no_resume" if procedure else "plan_takes_no_messages"
            )
    return None
