"""The current state of a session, and messages to it."""

from dataclasses import dataclass

from cueline.actors.fold import SessionCache
from cueline.actors.inbox import check_heard, unread_of
from cueline.actors.session_tree import read_start_request
from cueline.client.context import Connection
from cueline.deciders.session import SessionState
from cueline.deciders.session.current_agent import with_changes
from cueline.deciders.session.messages import will_be_held, will_stop
from cueline.events.agent import AgentSpec, with_model
from cueline.events.budget import Allowance
from cueline.events.inbox import InboxMessage, StartAsked
from cueline.events.store import Appended


@dataclass(frozen=True, slots=True)
class CurrentSession:
    """A session, and the unread messages of its inbox."""

    state: SessionState
    version: int
    asked: StartAsked | None
    """The start request; None once the session has begun."""
    unread: tuple[object, ...]

    @property
    def agent(self) -> AgentSpec:
        """The session's agent, with tools and model as people have changed them since the start."""
        agent = self.state.agent if self.asked is None else self.asked.agent
        if self.state.chosen is not None:
            agent = with_model(agent, self.state.chosen)
        return with_changes(agent, self.unread)

    @property
    def allowances(self) -> tuple[Allowance, ...]:
        """The limits of the session's ancestors."""
        if self.asked is not None:
            return self.asked.allowances
        return () if self.state.setup is None else self.state.setup.family.allowances

    @property
    def stopping(self) -> bool:
        """Whether the session was asked to end."""
        return will_stop(self.state, self.unread)

    @property
    def held(self) -> bool:
        """Whether the session is paused, or will be paused after it has read its inbox."""
        return will_be_held(self.state, self.unread)

    def check_takes(self, message: InboxMessage) -> None:
        """Refuse *message* if the session would refuse it.

        Raises:
            SessionFinishedError: the session has ended.
            RejectedError: the session was asked to stop, or its limits cannot be raised so.
        """
        check_heard(self.state, self.unread, message, self.agent)


async def current_session(cache: SessionCache, stream: str) -> CurrentSession:
    """Return the current state of the session *stream*.

    Raises:
        UnknownSessionError: there is no such session.
        CorruptEventError: an event was damaged or emptied.
    """
    state, version = await cache.fold(stream)
    asked = None if state.setup else await read_start_request(cache.journal, stream)
    unread = tuple(said for _, said in await unread_of(cache.journal, state))
    return CurrentSession(state, version, asked, unread)


async def post(
    client: Connection,
    now: CurrentSession,
    message: InboxMessage,
    *,
    by: str = "",
    key: str | None = None,
) -> Appended:
    """Record *message*, without the secrets of the session's agent (I11).

    The sender is *by*, or the user of this process.
    """
    # First: the session may fail again before this call returns.
    client.place.tries_again(now.state.stream)
    actor = f"user:{by or client.log.user}"
    return await client.log.post(now.state.stream, message, now.agent, by=actor, key=key)
