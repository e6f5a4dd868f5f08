"""Begins the activation of a session: returns its first facts, and checks its secrets."""

from datetime import datetime
from functools import partial

from cueline.actors.entity import Entity
from cueline.actors.host_dependencies import HostDependencies
from cueline.actors.inbox import unread_of
from cueline.actors.model_caller import highest_cost, sent_to
from cueline.actors.person_wait import person_seconds
from cueline.deciders.session import DRIVEN, SessionState, derived_events
from cueline.deciders.session.children import overdue
from cueline.deciders.session.messages import waived_secrets, will_stop
from cueline.events.agent import AgentSpec, answering
from cueline.events.fact import shared_fields
from cueline.events.inbox import StartAsked
from cueline.events.session import (
    LostAttempt,
    SessionContinued,
    SessionEvent,
    SessionForked,
    SessionStarted,
    SessionTakenOver,
)


async def first_event(
    entity: Entity, asked: StartAsked, agent: AgentSpec, now: datetime
) -> SessionStarted | SessionForked:
    """Return the first fact of the session; for a fork, fold the parent's events first."""
    here = {"agent": agent, "epoch": entity.epoch, "at": now}
    if asked.fork_of is None:
        return SessionStarted(**shared_fields(asked, SessionStarted) | here)
    await entity.inherit(asked.fork_of.stream, asked.fork_of.version)
    here |= shared_fields(asked.fork_of, SessionForked) | {"parent": asked.fork_of.stream}
    return SessionForked(**shared_fields(asked, SessionForked) | here)


async def recover(entity: Entity, dependencies: HostDependencies) -> list[SessionEvent]:
    """Return the facts to record first at the activation of a session that has already started."""
    now, state = dependencies.clock.now(), entity.state
    if state.status in DRIVEN:
        lost = _lost(entity, dependencies)
        taken = SessionTakenOver(
            epoch=entity.epoch, lost_attempts=lost, handed_over=entity.was_handed_over, at=now
        )
        return [taken]
    if derived_events(state):
        return [SessionContinued(by="replay", at=now)]
    if await _reachable(state, dependencies):
        return [SessionContinued(by="runner", at=now)]
    return []


def _lost(entity: Entity, dependencies: HostDependencies) -> tuple[LostAttempt, ...]:
    state = entity.state
    model = state.turn.model
    if model is None or model.phase != "started":
        return ()
    asked = answering(state.agent, model.fallback)
    # The ledger settles a lost call whose budget it reserved.
    sent = sent_to(asked, entity.prompt.messages)
    cost = None if state.limited else highest_cost(dependencies, asked, sent)
    return (LostAttempt(effect=model.effect, attempt=model.attempt, cost=cost),)


async def _reachable(state: SessionState, dependencies: HostDependencies) -> bool:
    """Whether an unreachable runner of an open call answers again, or is known to be dead."""
    for call in state.open_calls:
        if call.unreached and call.runner is not None:
            if await dependencies.runners.answers(call.runner):
                return True
            if await dependencies.runners.gone(call.runner) is not None:
                return True
    return False


async def check_secrets(entity: Entity, dependencies: HostDependencies, agent: AgentSpec) -> None:
    """Refuse to record anything that may hold a secret unknown here (I11).

    Raises:
        ConfigError: the message says what to do.
    """
    if not agent.secrets:
        return
    unread = [said for _, said in await unread_of(entity.journal, entity.state)]
    if not will_stop(entity.state, unread):  # a session that ends starts nothing
        dependencies.check_secrets(agent, waived_secrets(entity.state, unread))


async def waited_for_people(entity: Entity, now: datetime) -> dict[str, float]:
    """Return how long the children whose deadline has passed waited for a person, in seconds."""
    waited = {}
    for child in overdue(entity.state, now):
        look = partial(person_seconds, entity.journal, child.stream, now)
        if seconds := await entity.patiently(look):
            waited[child.stream] = seconds
    return waited
