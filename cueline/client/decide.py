"""Checks a person's decision by the gate's rules, and puts it into the session's inbox."""

from datetime import datetime
from typing import Literal

from cueline.client.answer import checked_answer
from cueline.client.argument_check import make_value
from cueline.client.context import Connection
from cueline.client.current_session import current_session, post
from cueline.client.question import approval_of, read_on, refused_text
from cueline.client.receipt import DecisionReceipt, receipt_fields
from cueline.deciders.approval import ApprovalState, vote_of
from cueline.deciders.policy import always_scope as as_now
from cueline.errors import ConfigError, NotPendingError, RejectedError
from cueline.events.agent import AgentSpec, ToolSpec
from cueline.events.approval import ApprovalOpened
from cueline.events.inbox import DecisionGiven
from cueline.events.journal import Journal
from cueline.events.session import ApprovalRequested
from cueline.events.stream import shown, sibling, tenant_of

PROGRAM = "mcp"
"""The channel of decisions that come from a program, perhaps without a person (C17)."""


async def question_of(client: Connection, name: str) -> ApprovalOpened:
    """Return the event that opened the approval *name*, which is still open.

    Raises:
        NotPendingError: the question is over; the message has its outcome.
    """
    tenant, name = client.log.tenant, name.replace(":", "/", 1)
    full = name if "/" in name or tenant is None else f"{tenant}/{name}"
    state = await approval_of(client.log.journal(), full)
    if state.opened is not None:
        client.log.check_sees(state.opened.session)
    return _pending(name, state, client.log.clock.now())


def decision_of(
    verdict: Literal["grant", "deny"],
    asked: object,
    by: str | None = None,
    *,
    channel: str = "api",
    **said: object,
) -> DecisionGiven:
    """Return the decision on a question; *asked* is its event or the approval's id.

    Raises:
        ConfigError: a value is wrong.
    """
    if isinstance(asked, ApprovalRequested):
        said |= {"approval": asked.approval, "digest": asked.digest}
    elif isinstance(asked, str):
        said["approval"] = asked
    else:
        why = f"{asked!r} is neither the id of an approval, such as '7f3a.3.0.1', nor its event"
        raise ConfigError("approval", why)
    return make_value(DecisionGiven, verdict=verdict, by=by or "", channel=channel, **said)


async def decide(
    client: Connection, stream: str, given: DecisionGiven, *, key: str | None = None
) -> DecisionReceipt:
    """Put the decision into the inbox of the asking session; with a *key*, once.

    Without a digest, the decision is about the current question; without a person, it is
    by the user of this process.

    Raises:
        NotPendingError: the question is over, or another decision counts first.
        RejectedError: the gate or the session refuses the decision; the message says why.
        SessionFinishedError: the session has ended.
        ConfigError: an edit cannot run, `always` names paths for a tool without paths, or an
            answer does not fit what the call asks for.
    """
    journal, moment, short = client.log.journal(), client.log.clock.now(), _short(given.approval)
    name = given.approval if "/" in given.approval else f"{tenant_of(stream)}/{short}"
    approval = await approval_of(journal, name)
    opened = approval.opened
    if not given.digest:
        opened = _pending(name, approval, moment)
    current = await current_session(client.cache, stream)
    call = current.state.call_of_approval(short)
    asked = opened or (None if call is None else call.approval)
    in_doubt = asked is not None and asked.question == "did_it_happen"
    tool = opened.tool if opened is not None else "" if call is None else call.tool
    client.log.check_may("approve", tool)
    if client.log.person is not None and given.by not in ("", client.log.user):
        raise RejectedError(short, f"{client.log.user} decides in their own name only")
    told = {"approval": short, "by": given.by or client.log.user}
    if opened is not None:
        told["digest"] = given.digest or opened.digest
    if in_doubt and given.verdict == "deny":
        told["resolution"] = "do_not_run"
    given = given.model_copy(update=told)
    current.check_takes(given)
    # The gate opens a question before the session records it; the session holds the decision.
    only_opened = opened is not None and opened.session == stream and approval.verdict is None
    if short not in current.state.questions and not only_opened:
        raise NotPendingError(short, f"{shown(stream)} does not wait for it (any more)")
    at = None
    if opened is not None:
        _pending(name, approval, moment)
        given = await _checked(client, approval, opened, given, current.agent)
    seen = current.state.inbox_seen
    if not await was_given(journal, approval, given, stream, seen):
        at = await post(client, current, given, by=given.by, key=key)
        # Another decision may have been recorded since; the first in the log counts.
        await was_given(journal, approval, given, stream, seen, until=at.versions[0] - 1)
    return DecisionReceipt(
        **await receipt_fields(client, stream, given.type, at),
        approval=short,
        verdict=given.verdict,
        by=given.by,
        resolution=given.resolution,
        votes=opened.votes if opened else 1,
    )


def _short(name: str) -> str:
    return name.rpartition("/")[2]


def _pending(name: str, state: ApprovalState, now: datetime) -> ApprovalOpened:
    if state.opened is None:
        why = "there is no such approval; `cueline pending` lists what waits"
        raise NotPendingError(_short(name) or repr(name), why)
    if state.verdict is not None:
        by = f" by {state.by}" if state.by else ""
        raise NotPendingError(_short(name), f"it does not wait any more: {state.verdict}{by}")
    if state.opened.deadline_at < now:
        passed = state.opened.deadline_at.isoformat(" ", "seconds")
        raise NotPendingError(_short(name), f"its deadline passed at {passed}")
    return state.opened


async def _checked(
    client: Connection,
    state: ApprovalState,
    opened: ApprovalOpened,
    given: DecisionGiven,
    agent: AgentSpec,
) -> DecisionGiven:
    """Return *given* with all its fields, after the checks of the gate and of the edit."""
    needs_people = opened.may_grant or opened.excluded or opened.votes > 1
    if given.channel == PROGRAM and given.verdict == "grant" and needs_people:
        how = f"a person does, by `cueline approve {given.approval}`"
        why = f"its policy names who may allow it: {how}"
        raise RejectedError(given.approval, why)
    if opened.question == "what_to_answer" and given.verdict == "grant":
        given = given.model_copy(update={"result": checked_answer(opened.requests, given.result)})
    if why := refused_text(state, vote_of(given, "", client.log.clock.now())):
        raise RejectedError(given.approval, why)
    tool = tool_of(agent, opened.tool)
    if given.always and not tool.paths:
        why = f"{tool.name} names no paths; without one, it is for exactly these arguments"
        raise ConfigError("always", why)
    if given.edit is not None:
        await client.log.check_edit(agent, tool, given.edit)
    if given.always != ():
        return given
    arguments = opened.arguments if given.edit is None else given.edit
    return given.model_copy(update={"always": as_now(tool, arguments)})


def tool_of(agent: AgentSpec, name: str) -> ToolSpec:
    """Return the tool of *agent* with this name."""
    return next(tool for tool in agent.tools if tool.name == name)


async def was_given(  # noqa: PLR0917
    journal: Journal,
    state: ApprovalState,
    decision: DecisionGiven,
    session: str,
    after: int = 0,
    until: int | None = None,
) -> bool:
    """Whether the same decision already waits in the inbox, up to version *until*.

    Raises:
        NotPendingError: another decision waits, and will count first.
    """
    async for recorded, said in journal.read(sibling(session, "inbox"), after, until):
        if not isinstance(said, DecisionGiven) or said.approval != decision.approval:
            continue
        before, state = state, read_on(state, recorded, said)
        enough = state.verdict is not None or said.by == decision.by
        if state != before and _holds(said, decision) and enough:
            return True
    reason = "" if state.verdict is None else f"it was {state.verdict} by {state.by} before"
    if decision.verdict == "grant" and decision.by in state.grantors:
        reason = reason or f"{decision.by} has allowed it before"
    if reason:
        raise NotPendingError(decision.approval, f"{reason}, which counts when it is next driven")
    return False


def _holds(said: DecisionGiven, decision: DecisionGiven) -> bool:
    """Whether *said* has all values of *decision*."""
    same = (said.verdict, said.edit) == (decision.verdict, decision.edit)
    same = same and said.resolution == decision.resolution
    return (
        same
        and decision.result in ("", said.result)
        and decision.note in ("", said.note)
        and decision.always in (None, said.always)
    )
