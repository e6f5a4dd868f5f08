"""Proposals: requests that are checked and described now, and carried out by a later commit.

Proposing records nothing. The id of a proposal is the request itself, sealed with the master
key of this machine's stored keys, so each process with that key can commit it.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from secrets import token_hex
from typing import Any, Final, get_args

import msgspec
from pydantic import JsonValue

from cueline.actors.session_tree import read_start_request
from cueline.client.context import Connection
from cueline.client.document import document
from cueline.client.keys import master_key
from cueline.client.proposal_plan import ACTIONS, ActionName, Change, Plan, plan_of
from cueline.client.receipt import Receipt, receipt_fields, receipt_of_start
from cueline.client.resume import resume_request
from cueline.client.start import StartRequest, exists, id_of_key
from cueline.client.wishes import key_of, wish
from cueline.errors import (
    ConfigError,
    ForbiddenError,
    NotUndoableError,
    ProposalError,
    ProposalExpiredError,
    ProposalStaleError,
    RejectedError,
)
from cueline.events.inbox import DecisionGiven, ResumeAsked
from cueline.events.journal import FactWrite
from cueline.events.proposal import ProposalRejected
from cueline.events.store import ANY, NO_STREAM, Appended
from cueline.events.stream import (
    DEFAULT_TENANT,
    shown,
    sibling,
    stream_name,
    tenant_of,
)

VALID: Final = timedelta(minutes=15)
"""The time in which a proposal can be committed."""
LONGEST_ID: Final = 12_000
"""The most characters of an id: it is a part of a URL, and models copy it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Proposal:
    """A request that waits for its commit. Nothing is recorded."""

    id: str
    """The proposal itself, sealed; the person who proposed can commit it once."""
    action: ActionName
    summary: str
    """What the commit does, in words."""
    session: str | None
    """The session's id; None for a start."""
    version: int | None
    """The version of the session that the proposal was made against."""
    changes: Mapping[str, Change]
    """The values that the commit changes."""
    preview: str = ""
    """The change of the call that would be allowed, as a unified diff."""
    undoable: bool
    """Whether `undo_proposal` works after the commit."""
    expires_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class RejectReceipt:
    """The receipt of a rejected proposal."""

    action: ActionName
    position: int
    """The position of the log with the rejection."""


class _Sealed(msgspec.Struct, frozen=True, array_like=True):
    """The content of an id."""

    action: ActionName
    arguments: dict[str, Any]
    nonce: str
    expires: int
    """The last second since 1970 in which it can be committed."""
    stream: str = ""
    version: int = 0
    inbox: int = 0
    """The version of the session's inbox; the commit comes after it."""
    was: dict[str, Any] = {}
    """The values on which the proposal depends."""
    back: dict[str, Any] = {}
    """The arguments of the action that undoes it, without the session."""


async def propose(
    client: Connection, action: ActionName, arguments: Mapping[str, JsonValue]
) -> Proposal:
    """Check a request, and return what it would do; nothing is recorded.

    Args:
        client: the client of the person who proposes.
        action: the kind of the request.
        arguments: the `session`, `approval` or `blueprint`, and the values of the request.

    Raises:
        ConfigError: an argument is missing or wrong, or the proposal is too long.
        UnknownSessionError: there is no such session.
        RejectedError: the session refuses the request, or nothing would change.
        NotPendingError: the approval is not open.
    """
    nonce, expires_at = token_hex(6), (client.log.clock.now() + VALID).replace(microsecond=0)
    plan = await plan_of(client, action, arguments, _key(nonce))
    if plan.changes and all(each.before == each.after for each in plan.changes.values()):
        raise RejectedError(shown(plan.stream), f"nothing would change by {action}")
    sealed = _Sealed(
        action,
        plan.arguments,
        nonce,
        int(expires_at.timestamp()),
        plan.stream,
        plan.version,
        plan.inbox,
        plan.was,
        dict(plan.back),
    )
    id = _seal(client, sealed)  # noqa: A001 - the word of the log
    if len(id) > LONGEST_ID:
        raise ConfigError("arguments", "they are too long for a proposal; leave out attachments")
    return Proposal(
        id=id,
        action=action,
        summary=plan.summary,
        session=shown(plan.stream) if plan.stream else None,
        version=plan.version or None,
        changes=plan.changes,
        preview=plan.preview,
        undoable=bool(ACTIONS[action].inverse),
        expires_at=expires_at,
    )


async def commit_proposal(client: Connection, proposal: str) -> Receipt:
    """Carry out a proposal, once; a repetition returns the receipt of the first commit.

    Args:
        client: the client of the person who proposed.
        proposal: the proposal's id.

    Raises:
        ProposalError: it is no proposal of this person and this log.
        ProposalExpiredError: propose again.
        ProposalStaleError: the session has changed since; propose again.
        RejectedError: the person may not do this.
    """
    return await commit(client, proposal, channel="api")


async def commit(client: Connection, proposal: str, *, channel: str) -> Receipt:
    """See `commit_proposal`; *channel* is recorded with a decision about an approval."""
    sealed = _unseal(client, proposal)
    if (before := await _first_receipt(client, sealed)) is not None:
        return before
    plan = await _checked(client, sealed)
    key = _key(sealed.nonce)
    match plan.value:
        case StartRequest() as request:
            receipt = (await request.submit(client)).receipt
        case ResumeAsked():
            resumed = await resume_request(
                client,
                plan.stream,
                accept_changed_tools=False,
                accept_with=f"`cueline resume {shown(plan.stream)}`",
                without_secrets=(),
            )
            receipt = (await resumed.submit(client, key=key_of(plan.value, key))).receipt
        case DecisionGiven() as given:
            given = given.model_copy(update={"channel": channel})
            receipt = await wish(client, plan.stream, given, key=key)
        case value:
            receipt = await wish(client, plan.stream, value, key=key)
    assert receipt is not None
    return receipt


async def _checked(client: Connection, sealed: _Sealed) -> Plan:
    """Return what the proposal would do now, if that is what it says.

    Raises the errors of `commit_proposal`.
    """
    if (await client.log.store.head(_own_stream(client, sealed))).version != NO_STREAM:
        raise ProposalError(sealed.action, "the proposal was rejected; propose again")
    if client.log.clock.now().timestamp() > sealed.expires:
        raise ProposalExpiredError(sealed.action, "its 15 minutes have passed; propose again")
    try:
        plan = await plan_of(client, sealed.action, sealed.arguments, _key(sealed.nonce))
    except ForbiddenError:
        raise
    except RejectedError as error:
        raise ProposalStaleError(sealed.action, f"it is not possible any more: {error}") from error
    for name, was in sealed.was.items():
        if document(plan.was[name]) != was:
            why = f"{name} was {was}, and is {plan.was[name]} now; propose again"
            raise ProposalStaleError(shown(sealed.stream), why)
    return plan


async def reject_proposal(client: Connection, proposal: str) -> RejectReceipt:
    """Give up a proposal, so that it cannot be committed.

    Args:
        client: the client of the person who proposed.
        proposal: the proposal's id.

    Raises:
        ProposalError: it is no proposal of this person and this log.
        RejectedError: it was committed.
    """
    sealed = _unseal(client, proposal)
    client.log.check_may("approve" if sealed.action in ("approve", "deny") else "send")
    if await _first_receipt(client, sealed) is not None:
        raise RejectedError(sealed.action, "it was committed; `undo_proposal` can undo some")
    fact = ProposalRejected(action=sealed.action, session=sealed.stream)
    write = FactWrite(
        stream=_own_stream(client, sealed),
        steps=[[fact]],
        expected_version=ANY,
        actor=f"user:{client.log.user}",
    )
    at = await client.log.journal().append([write], key="reject")
    return RejectReceipt(action=sealed.action, position=at.position)


async def undo_proposal(client: Connection, proposal: str) -> Proposal:
    """Propose to undo a committed proposal: to resume after a pause, or to take the former model.

    Args:
        client: the client of the person who proposed.
        proposal: the id of the committed proposal.

    Raises:
        NotUndoableError: it was not committed, or its effect cannot be taken back.
        ProposalError: it is no proposal of this person and this log.
        RejectedError: the session refuses this now, or it was undone.
    """
    sealed = _unseal(client, proposal)
    inverse = ACTIONS[sealed.action].inverse
    if not inverse:
        raise NotUndoableError(sealed.action, "its effect cannot be taken back")
    if await _first_receipt(client, sealed) is None:
        raise NotUndoableError(sealed.action, "it was not committed, so there is nothing to undo")
    assert inverse in get_args(ActionName)
    return await propose(client, inverse, {"session": shown(sealed.stream), **sealed.back})  # type: ignore[arg-type]


def _key(nonce: str) -> str:
    return f"proposal.{nonce}"


async def _first_receipt(client: Connection, sealed: _Sealed) -> Receipt | None:
    """Return the receipt of an earlier commit; None if there was none."""
    key = _key(sealed.nonce)
    if not sealed.stream:
        stream = client.log.session_stream(id_of_key(key))
        if not await exists(client.log, stream):
            return None
        asked = await read_start_request(client.log.journal(), stream)
        return replace(await receipt_of_start(client, stream, asked), recorded=False)
    kind, inbox = ACTIONS[sealed.action].kind, sibling(sealed.stream, "inbox")
    async for each, said in client.log.journal().read(inbox, sealed.inbox):
        if isinstance(said, kind) and each.causation_id == key_of(said, key):  # type: ignore[arg-type]
            at = Appended((each.version,), each.position, each.recorded_us)
            told = await receipt_fields(client, sealed.stream, each.type, at)
            return Receipt(**{**told, "recorded": False})
    return None


def _own_stream(client: Connection, sealed: _Sealed) -> str:
    own = client.log.tenant or DEFAULT_TENANT
    tenant = tenant_of(sealed.stream) if sealed.stream else own
    return stream_name("proposal", sealed.nonce, tenant)


def _seal(client: Connection, sealed: _Sealed) -> str:
    return master_key().seal(msgspec.json.encode(sealed), _purpose(client))


def _unseal(client: Connection, proposal: str) -> _Sealed:
    try:
        plain = master_key().unseal(proposal, _purpose(client))
        return msgspec.json.decode(plain, type=_Sealed)
    except (ValueError, UnicodeError) as error:
        why = "is not of this person and this log, or was not copied whole; propose again"
        raise ProposalError("proposal", why) from error


def _purpose(client: Connection) -> str:
    return f"proposal\0{client.log.id}\0{client.log.tenant}\0{client.log.user}"
