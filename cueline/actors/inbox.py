"""How anyone tells a session something: an event in its inbox, never a call (I7)."""

from collections.abc import Collection
from uuid import uuid4

from cueline.actors.session_tree import read_start_request, register_child, unknown_session_error
from cueline.deciders.session import SessionState
from cueline.deciders.session.changed_tools import with_tools
from cueline.deciders.session.limit import raise_refusal
from cueline.deciders.session.unread import will_stop
from cueline.errors import (
    KeyReusedError,
    RejectedError,
    SessionFinishedError,
    WrongExpectedVersionError,
)
from cueline.event_text import refusal_text
from cueline.events.agent import AgentSpec
from cueline.events.codec import Redacted
from cueline.events.fact import Fact
from cueline.events.inbox import InboxMessage, RaiseAsked, ResumeAsked, SecretsWaived, StartAsked
from cueline.events.journal import FactWrite, Journal
from cueline.events.store import ANY, NO_STREAM, Appended, EventStore, RecordedEvent
from cueline.events.stream import shown, sibling, stream_name

Unread = list[tuple[RecordedEvent, Fact | Redacted]]
"""Messages in order, as nobody has read them yet."""


def new_id() -> str:
    """Return an id for a session; short, and random enough for a log."""
    return uuid4().hex[:10]


async def ask_start(
    journal: Journal,
    id: str,  # noqa: A002 - the word of the log
    asked: StartAsked,
    by: str = "user",
    *,
    waived: SecretsWaived | None = None,
) -> str:
    """Ask for a session, and return its stream. Whoever looks for work takes it up.

    Its secrets are *waived* in the same append: no host sees the one without the other.
    A child's parent is told in the same append, and the child is counted in its tree.

    Raises:
        RejectedError: there is a session of that id, or the tree is full; choose
            another, or do without.
    """
    stream = stream_name("session", id)
    steps: list[list[Fact]] = [[asked]]
    if waived is not None:
        steps.append([waived])
    write = FactWrite(
        stream=sibling(stream, "inbox"), steps=steps, expected_version=NO_STREAM, actor=by
    )
    taken = RejectedError(shown(stream), "there is a session of this id")
    while True:
        try:
            await journal.append(
                [write, *await register_child(journal, stream, asked)], key="start"
            )
        except WrongExpectedVersionError as error:
            if error.stream == write.stream:
                raise taken from error
            # Its tree has one session more by now: it is counted again.
        except KeyReusedError as error:
            raise taken from error
        else:
            return stream


async def check_asked_for(store: EventStore, stream: str) -> None:
    """Refuse the name of a session that nobody has asked for.

    Raises:
        UnknownSessionError: there is no such session.
    """
    if (await store.head(sibling(stream, "inbox"))).version == NO_STREAM:
        raise unknown_session_error(stream)


async def asked_agent(journal: Journal, stream: str) -> AgentSpec:
    """Return the agent that a session was asked for with, and the tools accepted since.

    Its secrets are never recorded.

    Raises:
        UnknownSessionError: there is no such session.
    """
    agent = (await read_start_request(journal, stream)).agent
    async for _, said in journal.read(sibling(stream, "inbox"), 1):
        if isinstance(said, ResumeAsked):
            agent = with_tools(agent, said.tools)
    return agent


async def unread_of(journal: Journal, state: SessionState) -> Unread:
    """Return the messages that a session, as it stands, has not read."""
    inbox = sibling(state.stream, "inbox")
    return [pair async for pair in journal.read(inbox, state.inbox_seen)]


def check_heard(
    state: SessionState, unread: Collection[object], message: InboxMessage, agent: AgentSpec
) -> None:
    """Refuse *message* where a session would not, when it has read what is *unread*, take it.

    Raises:
        SessionFinishedError: it has ended.
        RejectedError: it was asked to stop, or its limits cannot be raised like that.
    """
    id = shown(state.stream)  # noqa: A001 - the word of the log
    if state.finished:
        raise SessionFinishedError(id, f"the session has ended: {state.status}")
    if will_stop(state, unread):
        raise RejectedError(id, "it was asked to stop, and takes no more messages")
    if isinstance(message, RaiseAsked):
        limits = agent.limits if state.setup is None else state.limit_state.limits
        if (refused := raise_refusal(limits, unread, message)) is not None:
            raise RejectedError(id, refusal_text(refused))


async def post(
    journal: Journal,
    stream: str,
    message: InboxMessage,
    *,
    by: str = "user",
    key: str | None = None,
) -> Appended:
    """Put *message* into the session's inbox; with a *key*, posting twice is posting once.

    Raises:
        UnknownSessionError: there is no such session.
    """
    await check_asked_for(journal.store, stream)
    inbox = sibling(stream, "inbox")
    write = FactWrite(stream=inbox, steps=[[message]], expected_version=ANY, actor=by)
    return await journal.append([write], key=key or uuid4().hex)
