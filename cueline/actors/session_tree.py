"""Links a session to its parent: registers a child, and tells the parent how it ended.

Each is one append together with the message to the parent's inbox, so a crash
cannot separate them (I7).
"""

from cueline.actors.fold import SessionCache
from cueline.deciders.session import SessionState, Status
from cueline.errors import (
    RejectedError,
    SessionFinishedError,
    UnknownSessionError,
)
from cueline.events.budget import Allowance
from cueline.events.codec import not_redacted
from cueline.events.inbox import ChildAsked, ChildEnded, StartAsked
from cueline.events.journal import FactWrite, Journal
from cueline.events.store import ANY
from cueline.events.stream import shown, sibling
from cueline.events.tree import DescendantAsked


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
        raise SessionFinishedError(shown(parent), f"the session has ended: {state.status}")
    # If it has not started yet, use its start request.
    limits = begun.agent.limits if state.setup is None else state.limit_state.limits
    if begun.depth >= limits.max_depth:
        deeper = f"its children would be {begun.depth + 1} deep"
        raise RejectedError(shown(parent), f"{deeper}, and limits.max_depth is {limits.max_depth}")
    own = Allowance(session=parent, max_tokens=limits.max_tokens, max_cost=limits.max_cost)
    place = {
        "parent": parent,
        "root": begun.root or parent,
        "depth": begun.depth + 1,
        "allowances": tuple(filter(_limits, (own, *begun.allowances))),
    }
    return asked.model_copy(update=place)


def _limits(allowance: Allowance) -> bool:
    return allowance.max_tokens is not None or allowance.max_cost is not None


async def read_start_request(journal: Journal, stream: str) -> StartAsked:
    """Return the start request, which is the first message of a session's inbox.

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


async def register_child(journal: Journal, child: str, asked: StartAsked) -> list[FactWrite]:
    """Return the message to the parent, and the tree's count, for a new child.

    The count is the version of the tree's stream, changed by compare-and-set: after
    a conflict, try again.

    Raises:
        RejectedError: the tree has all the sessions that its root's `max_descendants` allows.
    """
    if asked.parent is None:
        return []
    root = asked.root or asked.parent
    tree = sibling(root, "tree")
    count = (await journal.store.head(tree)).version
    most = (await read_start_request(journal, root)).agent.limits.max_descendants
    if count >= most:
        why = f"{count} sessions were started below {shown(root)}, and its"
        raise RejectedError(shown(asked.parent), f"{why} limits.max_descendants is {most}")
    counted = DescendantAsked(session=child, parent=asked.parent)
    return [
        _parent_message(asked.parent, ChildAsked(child=child)),
        FactWrite(stream=tree, steps=[[counted]], expected_version=count, actor="system"),
    ]


def notify_parent(state: SessionState) -> list[FactWrite]:
    """Return the message to the parent of a session that has ended in *state*."""
    if state.setup is None or state.setup.family.parent is None:
        return []
    status, used = state.status, state.used
    assert status in (Status.COMPLETED, Status.FAILED, Status.STOPPED), "it has ended"
    ended = ChildEnded.model_validate(
        {
            "child": state.stream,
            "status": str(status),
            "tokens": used.tokens,
            "usd": used.usd,
        }
    )
    return [_parent_message(state.setup.family.parent, ended)]


def _parent_message(parent: str, message: ChildAsked | ChildEnded) -> FactWrite:
    return FactWrite(
        stream=sibling(parent, "inbox"), steps=[[message]], expected_version=ANY, actor="system"
    )
