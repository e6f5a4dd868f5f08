"""What is said to a session through its inbox: it counts even when nothing is running."""

from collections.abc import Sequence
from decimal import Decimal
from typing import Literal, TypedDict

from cueline.agents.preflight import chosen_model
from cueline.client.attachment import Attachable, attachments_of
from cueline.client.context import Connection
from cueline.client.current import CurrentSession, current_session
from cueline.client.receipt import PauseReceipt, Receipt, receipt_fields
from cueline.client.value import make_value
from cueline.deciders.session import DRIVEN
from cueline.errors import SessionFinishedError
from cueline.events.agent import ModelChoice
from cueline.events.event_text import cause_text
from cueline.events.inbox import (
    InboxMessage,
    Lane,
    MessageSent,
    ModelChangeAsked,
    PauseAsked,
    RaiseAsked,
)
from cueline.events.json_value import json_or_text
from cueline.events.session import MessageReceived, SessionCompleted, SessionFailed, SessionStopped
from cueline.events.store import Appended
from cueline.events.stream import shown


class NewLimits(TypedDict, total=False):
    """Limits of a session, as they are to be."""

    max_cost: Decimal | str | None
    max_tokens: int | None
    max_turns: int | None
    max_active_seconds: float | None
    max_wall_seconds: float | None


async def send(
    client: Connection,
    stream: str,
    text: str,
    lane: Lane,
    *,
    key: str | None = None,
    attachments: Sequence[Attachable] = (),
    model: str | ModelChoice | None = None,
    name: str = "",
) -> Receipt:
    """Say *text* to the agent of a session, after it got the *model*; with a *key*, once.

    With a *name* it is the value of the step that waits for it.

    Raises what `send_message`, `attachments_of` and `switch_model` raise.
    """
    attached = attachments_of(attachments)
    value = json_or_text(text) if name else None
    message = make_value(
        MessageSent, lane=lane, text=text, attachments=attached, name=name, value=value
    )
    if model is not None:
        await switch_model(client, stream, model, key=key)
    return await send_message(client, stream, message, key=None if key is None else f"send.{key}")


async def switch_model(
    client: Connection, stream: str, model: str | ModelChoice, *, key: str | None = None
) -> Receipt:
    """Give the agent of a session another model; with a *key*, once.

    Raises:
        ConfigError: the model cannot be used here; nothing was recorded.
        CuelineError: as `send_message` raises it.
    """
    now = await current_session(client.cache, stream)
    message = ModelChangeAsked(model=chosen_model(now.agent, model, now.allowances))
    return await send_message(client, stream, message, key=None if key is None else f"model.{key}")


async def raise_limits(client: Connection, stream: str, limits: NewLimits) -> Receipt:
    """Let a session have more. Raises what `send_message` raises."""
    return await send_message(client, stream, make_value(RaiseAsked, **limits))


async def send_message(
    client: Connection, stream: str, message: InboxMessage, *, key: str | None = None
) -> Receipt:
    """Put *message* into the inbox of a session that will take it.

    Raises:
        UnknownSessionError: there is no such session.
        SessionFinishedError: it has ended; what was recorded after its end counts for nothing.
        RejectedError: it was asked to stop, or its limits cannot be raised like that.
        KeyReusedError: something else was said with this key.
        CorruptEventError: something of it was damaged or emptied.
    """
    now = await current_session(client.cache, stream)
    now.check_takes(message)
    at = await post(client, now, message, key=key)
    await _check_counts(client, now, at)
    return Receipt(**await receipt_fields(client, stream, message.type, at))


async def pause(
    client: Connection, stream: str, why: Literal["asked", "signal"] = "asked"
) -> PauseReceipt:
    """Ask a session to pause; once is enough. Raises what `send_message` raises."""
    now, message = await current_session(client.cache, stream), PauseAsked(why=why)
    now.check_takes(message)
    at = None if now.held else await post(client, now, message)
    if at is not None:
        await _check_counts(client, now, at)
    hold = now.state.hold
    return PauseReceipt(
        **await receipt_fields(client, stream, message.type, at),
        why="" if at is not None or hold is None else cause_text(hold.cause),
        in_flight=now.state.status in DRIVEN,
    )


async def post(
    client: Connection,
    now: CurrentSession,
    message: InboxMessage,
    *,
    by: str | None = None,
    key: str | None = None,
) -> Appended:
    """Record *message*, without the secrets of the session's agent (I11)."""
    # First: it may fail again before we are told that it was posted.
    client.context.tries_again(now.state.stream)
    by = client.context.user if by is None else by
    return await client.log.post(now.state.stream, message, now.agent, by=f"user:{by}", key=key)


async def _check_counts(client: Connection, now: CurrentSession, at: Appended) -> None:
    """Refuse a message that the session can not read any more.

    Whoever drives a session reads its inbox once more after the end. What came
    later is read by nobody.

    Raises:
        SessionFinishedError: it ended before it could read that.
    """
    ended = ""
    async for _, fact in client.log.journal().read(now.state.stream, now.version):
        if isinstance(fact, MessageReceived) and fact.inbox_version == at.versions[0]:
            return
        ended = _ENDS.get(type(fact), ended)
    if ended:
        why = f"it ended before it could read that: {ended}"
        raise SessionFinishedError(shown(now.state.stream), why, now.state.progress is not None)


_ENDS: dict[type, str] = {
    SessionCompleted: "completed",
    SessionFailed: "failed",
    SessionStopped: "stopped",
}
