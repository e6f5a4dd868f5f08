"""A session as it is now, for whoever wants something of it."""

from dataclasses import dataclass

from cueline.actors.fold import fold
from cueline.actors.inbox import check_heard, unread_of
from cueline.actors.session_tree import read_start_request
from cueline.deciders.session import SESSION, SessionState, session_of
from cueline.deciders.session.changed_tools import with_tools
from cueline.deciders.session.unread import will_be_held, will_stop
from cueline.events.agent import AgentSpec
from cueline.events.inbox import InboxMessage, ResumeAsked, StartAsked
from cueline.wiring import OpenLog


@dataclass(frozen=True, slots=True)
class CurrentSession:
    """A session, and what is in its inbox and was not read."""

    state: SessionState
    version: int
    asked: StartAsked
    """What it was asked for with."""
    unread: tuple[object, ...]

    @property
    def agent(self) -> AgentSpec:
        """Its agent, with the tools that were accepted since."""
        agent = self.asked.agent if self.state.setup is None else self.state.agent
        for said in self.unread:
            if isinstance(said, ResumeAsked):
                agent = with_tools(agent, said.tools)
        return agent

    @property
    def attached(self) -> bool:
        """Whether it was started at a terminal, where its questions are asked."""
        setup = self.state.setup
        return self.asked.attached if setup is None else setup.attached

    @property
    def stopping(self) -> bool:
        """Whether it was asked to end."""
        return will_stop(self.state, self.unread)

    @property
    def held(self) -> bool:
        """Whether it is paused, or will be as soon as its inbox is read."""
        return will_be_held(self.state, self.unread)

    def check_takes(self, message: InboxMessage) -> None:
        """Refuse *message* where the session would not take it.

        Raises:
            SessionFinishedError: it has ended.
            RejectedError: it was asked to stop, or its limits cannot be raised like that.
        """
        check_heard(self.state, self.unread, message, self.agent)


async def current_session(log: OpenLog, stream: str) -> CurrentSession:
    """Return the session *stream* as it is now.

    Raises:
        UnknownSessionError: there is no such session.
        CorruptEventError: something of it was damaged or emptied.
    """
    journal = log.journal()
    asked = await read_start_request(journal, stream)
    state, version = await fold(journal, stream, SESSION, session_of(stream))
    unread = tuple(said for _, said in await unread_of(journal, state))
    return CurrentSession(state, version, asked, unread)
