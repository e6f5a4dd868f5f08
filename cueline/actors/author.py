"""Who is behind each fact of a session, as the audit tells it."""

from cueline.deciders.approval import AUTO_APPROVER, AUTO_IN_TIME
from cueline.events.fact import Fact
from cueline.events.inbox import ChildAsked, ChildEnded, DecisionGiven, RoomMade
from cueline.events.session import (
    ApprovalResolved,
    MessageReceived,
    MessageRefused,
    ModelFailed,
    ModelReplied,
    ToolFailed,
    ToolReconciled,
    ToolReturned,
    ToolStarted,
)

_BY_TYPE: dict[type[Fact], str] = {
    ModelReplied: "agent",
    ModelFailed: "agent",
    ToolStarted: "agent",
    ToolReturned: "runner",
    ToolFailed: "runner",
    MessageReceived: "user",
    MessageRefused: "user",
}
_TOLD_INSIDE = frozenset({MessageReceived, MessageRefused, ToolReconciled, ApprovalResolved})
"""Of these more than the type has to be asked, which takes longer."""
_NOT_PEOPLE = frozenset({"", AUTO_APPROVER, AUTO_IN_TIME})
"""By whom something is decided, and yet by no person."""


def author_of(fact: Fact) -> str:
    """Return `user`, `agent`, `runner` or `system`; of a person who gave a name, with it."""
    if type(fact) not in _TOLD_INSIDE:
        return _BY_TYPE.get(type(fact), "system")
    match fact:
        case MessageReceived(message=DecisionGiven(by=by)) if by:
            return f"user:{by}"
        case (
            MessageReceived(message=RoomMade() | ChildAsked() | ChildEnded())
            | MessageRefused(message=RoomMade() | ChildAsked() | ChildEnded())
        ):
            return "system"
        case ToolReconciled(by="tool"):
            return "runner"
        case (
            ToolReconciled(outcome="happened" | "did_not_happen", by=by)
            | ApprovalResolved(verdict="granted" | "denied", by=by)
        ) if by not in _NOT_PEOPLE:
            return f"user:{by}"
        case _:
            return _BY_TYPE.get(type(fact), "system")
