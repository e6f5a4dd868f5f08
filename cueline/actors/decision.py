"""A person's decision, checked by the rules that will judge it, before it is in the inbox."""

from collections.abc import Awaitable, Callable
from datetime import datetime

from cueline.actors.approval_gate import ApprovalName
from cueline.actors.fold import fold
from cueline.actors.inbox import asked_agent
from cueline.deciders.approval import APPROVAL, refusal, vote_of
from cueline.deciders.policy import always as as_now
from cueline.errors import ConfigError, NotPendingError, RejectedError
from cueline.events.agent import AgentSpec, ToolSpec
from cueline.events.inbox import DecisionGiven
from cueline.events.journal import Journal
from cueline.events.message import Arguments

CheckEdit = Callable[[AgentSpec, ToolSpec, Arguments], Awaitable[None]]


async def checked_decision(
    journal: Journal, stream: str, decision: DecisionGiven, now: datetime, check_edit: CheckEdit
) -> DecisionGiven:
    """Return *decision* on the session *stream* as it is meant.

    Raises:
        NotPendingError: its question is over, or does not wait any more.
        RejectedError: the gate would refuse it; the message says why.
        ConfigError: an edit cannot run, or `always` names paths to a tool that has none.
    """
    name = ApprovalName(stream, decision.approval).stream
    state, _ = await fold(journal, name, APPROVAL, APPROVAL.initial_state)
    if (opened := state.opened) is None:
        return decision
    if (why := refusal(state, vote_of(decision, "", now))) is not None:
        over = not state.pending or now > opened.deadline_at
        raise (NotPendingError if over else RejectedError)(decision.approval, why)
    agent = await asked_agent(journal, stream)
    tool = next(each for each in agent.tools if each.name == opened.tool)
    if decision.always and not tool.paths:
        raise ConfigError("always", f"{tool.name} names no paths, and so lies in no folder")
    if decision.edit is not None:
        await check_edit(agent, tool, decision.edit)
    if decision.always != ():
        return decision
    arguments = opened.arguments if decision.edit is None else decision.edit
    return decision.model_copy(update={"always": as_now(tool, arguments)})
