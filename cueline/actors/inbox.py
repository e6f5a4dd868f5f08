"""Sends messages to sessions: an event in the inbox stream, never a call (I7)."""

from collections.abc import Collection, Sequence
from uuid import uuid4

from cueline.actors.session_tree import read_start_request, register_child, unknown_session_error
from cueline.deciders.session import SessionState
from cueline.deciders.session.current_agent import with_changes
from cueline.deciders.session.limit import raise_refusal
from cueline.deciders.session.messages import unheard, will_stop
from cueline.errors import (
    KeyReusedError,
    RejectedError,
    SessionFinishedError,
    WrongExpectedVersionError,
)
from cueline.events.agent import AgentSpec
from cueline.events.codec import Redacted
from cueline.events.event_text import refusal_text
from cueline.events.fact import Fact
from cueline.events.inbox import InboxMessage, RaiseAsked, StartAsked
from cueline.events.journal import FactWrite, Journal
from cueline.events.store import ANY, NO_STREAM, Appended, EventStore, RecordedEvent
from cueline.events.stream import DEFAULT_TENANT, shown, sibling, stream_name

Unread = list[tuple[RecordedEvent, Fact | Redacted]]
"""Unread messages, in order."""


def new_id() -> str:
    """Return a new session id: short and random."""
    return uuid4().hex[:10]


async def ask_start(
    journal: Journal,
    id: str,  # noqa: A002 - the field's name in the log
    asked: StartAsked,
    by: str = "user",
    *,
    with_it: Sequence[InboxMessage] = (),
    tenant: str = DEFAULT_TENANT,
) -> str:
    """Append the start request of a session; return its stream.

    The same append holds the messages *with_it* and, for a child, the message to its
    parent and the count of the tree.

    Raises:
        RejectedError: the id exists, or the tree is full; choose another id, or
            do without the child.
    """
    stream = stream_name("session", id, tenant)
    steps: list[list[Fact]] = [[asked]]
    steps += [[each] for each in with_it]
    write = FactWrite(
        stream=sibling(stream, "inbox"), steps=steps, expected_version=NO_STREAM, actor=by
    )
    taken = RejectedError(shown(stream), "a session with this id exists")
    while True:
        try:
            await journal.append(
                [write, *await register_child(journal, stream, asked)], key="start"
            )
        except WrongExpectedVersionError as error:
            if error.stream == write.stream:
                raise taken from error
            # The tree has changed: count it again.
        except KeyReusedError as error:
            raise taken from error
        else:
            return stream


async def check_asked_for(store: EventStore, stream: str) -> None:
    """Raise if the session was never started.

    Raises:
        UnknownSessionError: there is no such session.
    """
    if (await store.head(sibling(stream, "inbox"))).version == NO_STREAM:
        raise unknown_session_error(stream)


async def asked_agent(journal: Journal, stream: str) -> AgentSpec:
    """Return the agent of the start request, with later chosen tools and models.

    Secrets are never recorded in it.

    Raises:
        UnknownSessionError: there is no such session.
    """
    agent = (await read_start_request(journal, stream)).agent
    said = [fact async for _, fact in journal.read(sibling(stream, "inbox"), 1)]
    return with_changes(agent, said)


async def unread_of(journal: Journal, state: SessionState) -> Unread:
    """Return the messages after the inbox position of *state*."""
    inbox = sibling(state.stream, "inbox")
    return [pair async for pair in journal.read(inbox, state.inbox_seen)]


def check_heard(
    state: SessionState, unread: Collection[object], message: InboxMessage, agent: AgentSpec
) -> None:
    """Raise if the session, after reading *unread*, would refuse *message*.

    Raises:
        SessionFinishedError: it has ended.
        RejectedError: it is stopping, its limits cannot be raised like that, or no model and
            no step reads the message.
    """
    id = shown(state.stream)  # noqa: A001 - the field's name in the log
    if (deaf := unheard(agent, message)) is not None:
        raise RejectedError(id, refusal_text(deaf))
    if state.finished:
        why = f"the session has ended: {state.status}"
        raise SessionFinishedError(id, why, state.progress is not None)
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
    """Append *message* to the session's inbox; a repeated *key* appends nothing.

    A *key* is recorded as the message's cause.

    Raises:
        UnknownSessionError: there is no such session.
    """
    await check_asked_for(journal.store, stream)
    inbox = sibling(stream, "inbox")
    write = FactWrite(
        stream=inbox, steps=[[message]], expected_version=ANY, actor=by, causation_id=key
    )
    return await journal.append([write], key=key or uuid4().hex)
