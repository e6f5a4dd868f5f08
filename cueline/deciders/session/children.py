"""The state changes of a session's children: started, stopped, ended."""

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Final

from msgspec.structs import replace

from cueline.deciders import prompt
from cueline.deciders.child_text import callback_of, callback_text, end_json, paused_text
from cueline.deciders.session.call import with_call
from cueline.deciders.session.state import OpenChild, PendingMessage, SessionState, Stop
from cueline.events.inbox import ChildAsked, ChildEnded, ChildPaused, InboxMessage
from cueline.events.session import CallDelegated, MessageReceived
from cueline.events.status import Status

END_SECONDS: Final = 60.0
"""The seconds that a child has to end after it was stopped at its deadline."""
PERSON_SECONDS: Final = 60.0
"""The least seconds by which a wait for a person moves a deadline; each move is recorded."""


def call_delegated(state: SessionState, event: CallDelegated) -> SessionState:
    """Return *state* with the child; the call of the child is open until the child has ended."""
    call = state.call(event.effect)
    if call is None:
        return state
    tool = state.setup.tools.get(event.tool) if state.setup is not None else None
    leave = tool is not None and tool.on_timeout == "leave"
    child = OpenChild(event.child, event.effect, event.mode, event.deadline_at, leave=leave)
    started = replace(call, phase="delegated", attempt=event.attempt, child=event.child)
    return with_call(replace(state, children=(*state.children, child)), started)


def child_asked(state: SessionState, message: ChildAsked) -> SessionState:
    """Return *state* with a child that a program started, which the session does not wait for."""
    child = OpenChild(message.child, stopping=state.stop is not None)
    return replace(state, children=(*state.children, child))


def child_ended(state: SessionState, event: MessageReceived, message: ChildEnded) -> SessionState:
    """Return *state* without the child, and with its *message* for a call or the model."""
    left = tuple([each for each in state.children if each.stream != message.child])
    effects = state.side_effects or message.side_effects_possible
    state = replace(state, children=left, side_effects=effects)
    if message.mode == "async_poll":
        return replace(state, results={**state.results, message.child: end_json(message)})
    if callback_of(event) is not None:
        told = prompt.fingerprint(prompt.user_message(callback_text(message)))
        mail = PendingMessage(event.inbox_version, "note", (told,))
        return replace(state, mail=(*state.mail, mail))
    call = state.call(message.effect)
    if call is None or call.phase != "delegated":
        return state
    return replace(state, ended=(*state.ended, message))


def child_paused(state: SessionState, version: int, message: ChildPaused) -> SessionState:
    """Return *state* with the child's pause or continuation; a pause is a message to the model."""
    paused = bool(message.reason)
    children = [
        replace(c, paused=paused) if c.stream == message.child else c for c in state.children
    ]
    state = replace(state, children=tuple(children))
    if not paused:
        return state
    told = prompt.fingerprint(prompt.user_message(paused_text(message)))
    return replace(state, mail=(*state.mail, PendingMessage(version, "note", (told,))))


def with_stop(state: SessionState, stop: Stop) -> SessionState:
    """Return *state* with the request to end the session and its children."""
    children = tuple([replace(child, stopping=True) for child in state.children])
    return replace(
        state, status=Status.STOPPING, stop=stop, hold=None, waiting=None, children=children
    )


def stopping(children: tuple[OpenChild, ...]) -> tuple[OpenChild, ...]:
    """Return *children* of a session that ends: the children of its calls are stopped."""
    return tuple([replace(c, stopping=True) if c.deadline_at else c for c in children])


def stop_overdue(
    state: SessionState, at: datetime | None, waited: Mapping[str, float]
) -> SessionState:
    """Return *state* with children stopped at their deadline; a stopped child is given up later.

    The seconds that a child *waited* for people move the deadline, unless the child was stopped.
    """
    if at is None or not overdue(state, at):
        return state
    moved = [_later(each, waited.get(each.stream, 0.0)) for each in state.children]
    return replace(state, children=tuple(filter(None, [_after(each, at) for each in moved])))


def overdue(state: SessionState, at: datetime) -> list[OpenChild]:
    """Return the children whose deadline has passed."""
    return [each for each in state.children if each.deadline_at and each.deadline_at <= at]


def _later(child: OpenChild, waited: float) -> OpenChild:
    if child.deadline_at is None or child.stopping or waited <= child.waited:
        return child
    more = max(waited - child.waited, PERSON_SECONDS)
    until = child.deadline_at + timedelta(seconds=more)
    return replace(child, deadline_at=until, waited=child.waited + more)


def _after(child: OpenChild, at: datetime) -> OpenChild | None:
    if child.deadline_at is None or child.deadline_at > at:
        return child
    if child.leave:
        return replace(child, overdue=True, deadline_at=None)
    if not child.overdue:
        until = at + timedelta(seconds=END_SECONDS)
        return replace(child, stopping=True, overdue=True, deadline_at=until)
    return None if child.mode == "async_callback" else replace(child, gone=True, deadline_at=None)


def is_late(state: SessionState, message: InboxMessage) -> bool:
    """Whether *message* is the end of a child that continued after its call had timed out."""
    if not isinstance(message, ChildEnded) or message.mode != "sync":
        return False
    return any(each.stream == message.child and each.left for each in state.children)


def awaited(state: SessionState) -> list[OpenChild]:
    """Return the children that the session waits for."""
    return [child for child in state.children if child.deadline_at is not None]


def newly_stopped(before: SessionState, after: SessionState) -> list[str]:
    """Return the children that are stopped in *after*, and were not in *before*."""
    told = {child.stream for child in before.children if child.stopping}
    return [each.stream for each in after.children if each.stopping and each.stream not in told]
