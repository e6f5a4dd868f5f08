"""Links the sessions of a tree: starts, counts and stops children; reports ends to parents.

Each message and count is in the same append as its fact, so a crash cannot separate them (I7).
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from datetime import datetime
from typing import Any, Final, Literal, NamedTuple

from cueline.actors.fold import SessionCache
from cueline.deciders.session import SessionState, Status
from cueline.deciders.session.children import newly_stopped
from cueline.deciders.session.delegation import allowances_below, child_request, too_deep
from cueline.deciders.session.state import ROOT
from cueline.errors import RejectedError, SessionFinishedError, UnknownSessionError
from cueline.events.agent import AgentSpec
from cueline.events.budget import DescendantAsked
from cueline.events.codec import not_redacted
from cueline.events.event_text import cause_text, end_text
from cueline.events.inbox import ChildAsked, ChildEnded, ChildPaused, StartAsked, StopAsked
from cueline.events.journal import FactWrite, Journal
from cueline.events.message import ToolCall
from cueline.events.session import (
    CallDelegated,
    SessionCompleted,
    SessionEvent,
    SessionFailed,
    SessionStopped,
)
from cueline.events.start import child_stream
from cueline.events.store import ANY, NO_STREAM
from cueline.events.stream import shown, sibling

OutputReader = Callable[[str, Mapping[str, Any]], tuple[Any, str]]
"""Reads a text as JSON of a schema: returns the value, and the fault of the text."""
_End = SessionCompleted | SessionFailed | SessionStopped
_STATUS: Final[Mapping[Status, Literal["completed", "failed", "stopped"]]] = {
    Status.COMPLETED: "completed",
    Status.FAILED: "failed",
    Status.STOPPED: "stopped",
}


async def child_of(cache: SessionCache, parent: str, asked: StartAsked) -> StartAsked:
    """Return *asked* as a child of the session *parent*, with the parent's limits.

    Raises:
        UnknownSessionError: there is no such parent.
        SessionFinishedError: the parent has ended.
        RejectedError: the tree would be deeper than the parent's `max_depth`.
    """
    begun = await read_start_request(cache.journal, parent)
    state, _ = await cache.fold(parent)
    return _child_of(state, begun, asked)


def _child_of(state: SessionState, begun: StartAsked, asked: StartAsked) -> StartAsked:
    parent = state.stream
    if state.finished:
        why = f"the session has ended: {state.status}"
        raise SessionFinishedError(shown(parent), why, state.progress is not None)
    # If it has not started yet, use its start request.
    limits = begun.agent.limits if state.setup is None else state.limit_state.limits
    if begun.depth >= limits.max_depth:
        raise RejectedError(shown(parent), too_deep(limits))
    place = {
        "parent": parent,
        "root": begun.root or parent,
        "depth": begun.depth + 1,
        "allowances": allowances_below(parent, limits, begun.allowances),
        "traceparent": begun.traceparent,
    }
    return asked.model_copy(update=place)


async def read_start_request(journal: Journal, stream: str) -> StartAsked:
    """Return the start request, the first message of a session's inbox.

    Raises:
        UnknownSessionError: there is no such session.
        CorruptEventError: the request was redacted.
    """
    begun = [pair async for pair in journal.read(sibling(stream, "inbox"), until=1)]
    if not begun:
        raise unknown_session_error(stream)
    asked = not_redacted(*begun[0])
    assert isinstance(asked, StartAsked), "an inbox begins with a start request"
    return asked


def unknown_session_error(stream: str) -> UnknownSessionError:
    """Return the error for a session that was never started."""
    return UnknownSessionError(shown(stream), "there is no such session in this log")


class TreeRoom(NamedTuple):
    """The number of further sessions that a tree may have."""

    root: str
    used: int
    """The version of the tree's stream."""
    most: int
    taken: frozenset[str] = frozenset()
    """The streams of existing sessions."""
    blueprints: Mapping[str, AgentSpec] = {}
    """The blueprints that runners offer, or have offered."""

    @property
    def stream(self) -> str:
        """The stream whose version is the number of sessions below the root."""
        return sibling(self.root, "tree")

    @property
    def refusal(self) -> str:
        """The reason why the tree has no room."""
        why = f"{self.used} sessions were started below {shown(self.root)}, and its"
        return f"{why} limits.max_descendants is {self.most}"

    def write(self, children: Sequence[DescendantAsked]) -> FactWrite:
        """Return the write that counts *children*; after a conflict, count again."""
        return FactWrite(
            stream=self.stream,
            steps=[[child] for child in children],
            expected_version=self.used,
            actor="system",
        )


async def tree_room(journal: Journal, root: str, children: Collection[str] = ()) -> TreeRoom:
    """Return the room of the tree of *root*, and which of *children* exist."""
    most = (await read_start_request(journal, root)).agent.limits.max_descendants
    tree, inboxes = sibling(root, "tree"), {sibling(each, "inbox"): each for each in children}
    heads = await journal.store.heads([tree, *inboxes])
    taken = frozenset(child for inbox, child in inboxes.items() if heads[inbox].version)
    return TreeRoom(root, heads[tree].version, most, taken)


async def with_descendants(journal: Journal, stream: str) -> list[str]:
    """Return *stream* and the sessions below it, each after its parent.

    Raises:
        UnknownSessionError: there is no such session.
    """
    root = (await read_start_request(journal, stream)).root or stream
    found = {stream: None}
    async for _, fact in journal.read(sibling(root, "tree")):
        if isinstance(fact, DescendantAsked) and fact.parent in found:
            found[fact.session] = None
    return list(found)


async def register_child(journal: Journal, child: str, asked: StartAsked) -> list[FactWrite]:
    """Return the message to the parent, and the tree's count, for a new child of a program.

    The count is the version of the tree's stream, changed by compare-and-set: after
    a conflict, try again.

    Raises:
        RejectedError: the tree has all the sessions that its root's `max_descendants` allows.
    """
    if asked.parent is None:
        return []
    room = await tree_room(journal, asked.root or asked.parent)
    if room.used >= room.most:
        raise RejectedError(shown(asked.parent), room.refusal)
    counted = DescendantAsked(session=child, parent=asked.parent)
    return [_message(asked.parent, ChildAsked(child=child)), room.write([counted])]


async def room_to_delegate(journal: Journal, state: SessionState) -> TreeRoom | None:
    """Return the room of the session's tree if a call may start a child; None otherwise.

    A call may become free to start in the same append, if an open breaker ends the previous one.
    """
    asking = [c.effect for c in state.turn.awake if c.delegates and c.phase == "requested"]
    if not asking:
        return None
    assert state.setup is not None, "a session with calls was started"
    children = [child_stream(state.stream, effect) for effect in asking]
    return await tree_room(journal, state.setup.family.root or state.stream, children)


def child_writes(
    state: SessionState,
    facts: Sequence[SessionEvent],
    calls: Mapping[str, ToolCall],
    room: TreeRoom | None,
    now: datetime,
) -> list[FactWrite]:
    """Return the start requests of the children that *facts* start, and their count.

    Args:
        state: the state of the session after *facts*.
        facts: the facts of one append.
        calls: the calls of the turn, by effect.
        room: the room of the tree, as it was counted before *facts*.
        now: the time of the start requests.
    """
    started = [fact for fact in facts if isinstance(fact, CallDelegated)]
    if room is None or not started:
        return []
    writes = []
    for each in started:
        offered = None if each.agent in state.agent.agents else room.blueprints[each.agent]
        asked = child_request(state, each, calls[each.effect].arguments, now, offered)
        inbox = sibling(each.child, "inbox")
        writes.append(FactWrite(inbox, [[asked]], NO_STREAM, actor=f"agent:{shown(state.stream)}"))
    counted = [DescendantAsked(session=each.child, parent=state.stream) for each in started]
    return [*writes, room.write(counted)]


def stop_writes(before: SessionState, after: SessionState) -> list[FactWrite]:
    """Return the messages to the children that the facts between the two states stop."""
    ends = after.stop is not None or after.finished
    reason = f"its parent {shown(after.stream)} {'ends' if ends else 'waits no longer for it'}"
    return [_message(child, StopAsked(reason=reason)) for child in newly_stopped(before, after)]


def pause_writes(before: SessionState, after: SessionState) -> list[FactWrite]:
    """Return the message to a parent whose call does not wait, if the session pauses or continues.

    A pause on request is no message.
    """
    place = ROOT if after.setup is None or after.finished else after.setup.family
    if place.parent is None or place.call is None or place.call.mode == "sync":
        return []
    was, reason = map(_pause_reason, (before, after))
    paused = ChildPaused(child=after.stream, reason=reason)
    return [_message(place.parent, paused)] if reason != was else []


def _pause_reason(state: SessionState) -> str:
    wait = state.waiting
    if wait is None or not wait.is_pause or wait.cause.code in ("asked", "signal"):
        return ""
    return cause_text(wait.cause)


def notify_parent(
    state: SessionState, facts: Sequence[SessionEvent], read_output: OutputReader
) -> list[FactWrite]:
    """Return the message to the parent of a session that ended in *state* with one of *facts*."""
    if state.setup is None or state.setup.family.parent is None:
        return []
    call = state.setup.family.call
    ended = ChildEnded(
        child=state.stream,
        status=_STATUS[state.status],
        tokens=state.used.tokens,
        usd=state.used.usd,
        side_effects_possible=state.side_effects,
    )
    if call is not None:
        said = {
            "effect": call.effect,
            "attempt": call.attempt,
            "mode": call.mode,
            "original_parameters": call.parameters,
        }
        # A message that came with the end is refused after it, in the same append.
        end = next(fact for fact in facts if isinstance(fact, _End))
        ended = ended.model_copy(update=said | _result(state.agent, end, read_output))
    return [_message(state.setup.family.parent, ended)]


def _result(agent: AgentSpec, end: _End, read_output: OutputReader) -> dict[str, object]:
    """Return the fields of `ChildEnded` that report the result or the error of *end*."""
    match end:
        case SessionFailed():
            return {"error_code": end.kind, "error": end.message or end_text(end)}
        case SessionStopped():
            return {"error_code": "child_stopped", "error": end_text(end)}
        case SessionCompleted(result=text, partial=partial):
            said: dict[str, object] = {"text": text, "partial": partial}
            said |= {"value": end.value, "is_null": end.is_null}
            if agent.output is None or agent.plan is not None:
                return said
            value, problem = read_output(text, agent.output)
            if problem:
                return said | {"error_code": "invalid_output", "error": f"{problem}\n{text}"}
            return said | {"value": value, "is_null": value is None}


def _message(to: str, message: ChildAsked | ChildEnded | ChildPaused | StopAsked) -> FactWrite:
    return FactWrite(
        stream=sibling(to, "inbox"), steps=[[message]], expected_version=ANY, actor="system"
    )
