"""Names the actor of each fact of a session for the audit."""

from cueline.deciders.approval import is_person
from cueline.events.fact import Fact
from cueline.events.inbox import (
    BudgetFreed,
    ChildAsked,
    ChildEnded,
    ChildPaused,
    DecisionGiven,
    SecretsWaived,
    SlotOffered,
)
from cueline.events.session import (
    ApprovalResolved,
    CallDelegated,
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
_BY_RULE = (("unknown", "policy"), ("unknown", "steer"))
_OF_CHILDREN = frozenset({CallDelegated, ToolReturned, ToolFailed})
"""Facts about children, whose actor is always the agent."""
_TOLD_INSIDE = frozenset({MessageReceived, MessageRefused, ToolReconciled, ApprovalResolved})
"""For these types, the actor depends on the fields."""


def actor_of(fact: Fact) -> str:
    """Return `user`, `agent`, `runner` or `system`; for a named person, with the name."""
    if type(fact) not in _TOLD_INSIDE:
        child = getattr(fact, "child", "") if type(fact) in _OF_CHILDREN else ""
        return "agent" if child else _BY_TYPE.get(type(fact), "system")
    match fact:
        case MessageReceived(message=DecisionGiven(by=by) | SecretsWaived(by=by)):
            return f"user:{by}" if is_person(by) else "system"
        case (
            MessageReceived(
                message=BudgetFreed() | SlotOffered() | ChildAsked() | ChildEnded() | ChildPaused()
            )
            | MessageRefused(
                message=BudgetFreed() | SlotOffered() | ChildAsked() | ChildEnded() | ChildPaused()
            )
        ):
            return "system"
        case ToolReconciled(by="tool"):
            return "runner"
        case ToolReconciled(by=by) | ApprovalResolved(verdict="granted" | "denied", by=by) if (
            is_person(by) and not _is_by_rule(fact)
        ):
            return f"user:{by}"
        case _:
            return _BY_TYPE.get(type(fact), "system")


def _is_by_rule(fact: Fact) -> bool:
    """Whether the rules resolved a call in doubt, without evidence and without a person."""
    return isinstance(fact, ToolReconciled) and (fact.outcome, fact.by) in _BY_RULE
