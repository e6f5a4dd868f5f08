"""The wishes of people and programs about a session, each a message of its inbox.

A message in the inbox counts even if no process runs: the next owner of the session reads it.
"""

from typing import Annotated, Final, TypeVar, get_args, overload

from pydantic import BaseModel, Field

from cueline.agents.preflight import chosen_model
from cueline.client.argument_check import make_value
from cueline.client.context import Connection
from cueline.client.current_session import CurrentSession, current_session, post
from cueline.client.decide import decide
from cueline.client.receipt import (
    DecisionReceipt,
    PauseReceipt,
    Receipt,
    StopReceipt,
    receipt_fields,
)
from cueline.client.remote import receipt_from
from cueline.deciders.session import DRIVEN
from cueline.errors import ConfigError, SessionFinishedError
from cueline.events.agent import ModelChoice
from cueline.events.event_text import cause_text
from cueline.events.fact import json_or_text
from cueline.events.inbox import (
    SET_BY_CUELINE,
    DecisionGiven,
    MessageSent,
    ModelChangeAsked,
    PauseAsked,
    RaiseAsked,
    ResumeAsked,
    StopAsked,
)
from cueline.events.session import MessageReceived, SessionCompleted, SessionFailed, SessionStopped
from cueline.events.store import Appended
from cueline.events.stream import shown
from cueline.providers.defaults import has_model_files
from cueline.runtime.inline import drive_to_end

Wish = Annotated[
    MessageSent
    | PauseAsked
    | ResumeAsked
    | RaiseAsked
    | StopAsked
    | DecisionGiven
    | ModelChangeAsked,
    Field(discriminator="type"),
]
"""A wish about a session; for a new session, it is `StartOptions`."""
W = TypeVar("W", bound=BaseModel)

WISHES: Final = {each.model_fields["type"].default: each for each in get_args(get_args(Wish)[0])}
"""The kinds of wishes, by their types."""
_KEYS: Final = {MessageSent: "send", ModelChangeAsked: "model"}
"""The prefix of the keys of messages in the log; else it is the type."""
_RECEIPTS: Final[dict[type, type[Receipt]]] = {
    PauseAsked: PauseReceipt,
    StopAsked: StopReceipt,
    DecisionGiven: DecisionReceipt,
}
_ENDS: Final[dict[type, str]] = {
    SessionCompleted: "completed",
    SessionFailed: "failed",
    SessionStopped: "stopped",
}


def make_wish(kind: type[W], **values: object) -> W:
    """Return a wish with the *values* of a user.

    Raises:
        ConfigError: there is no such field, cueline sets the field, or the value is wrong.
    """
    for name, field in kind.model_fields.items():
        if name in values and SET_BY_CUELINE in field.metadata:
            raise ConfigError(name, "only cueline sets it")
    return make_value(kind, **values)


@overload
async def wish(
    client: Connection, stream: str, value: PauseAsked, *, key: str | None = None
) -> PauseReceipt: ...
@overload
async def wish(
    client: Connection, stream: str, value: StopAsked, *, key: str | None = None
) -> StopReceipt: ...
@overload
async def wish(
    client: Connection, stream: str, value: DecisionGiven, *, key: str | None = None
) -> DecisionReceipt: ...
@overload
async def wish(
    client: Connection,
    stream: str,
    value: ResumeAsked | RaiseAsked | MessageSent | ModelChangeAsked,
    *,
    key: str | None = None,
) -> Receipt: ...
async def wish(client: Connection, stream: str, value: Wish, *, key: str | None = None) -> Receipt:
    """Put *value* into the inbox of a session that accepts it; with a *key*, once.

    The model of a `ModelChangeAsked` without a provider is `PROVIDER/NAME`, or a NAME of the
    agent's provider. A `DecisionGiven` without a person is decided by the user of this process.

    Raises:
        ForbiddenError: the person may not; see `Person`.
        UnknownSessionError: there is no such session.
        SessionFinishedError: the session has ended; a message after its end has no effect.
        RejectedError: the session was asked to stop, or refuses the wish.
        NotPendingError: the question is not open.
        KeyReusedError: the key was used for another message.
        ConfigError: the model or an edit cannot be used; nothing was recorded.
        CorruptEventError: an event was damaged or emptied.
    """
    if (server := client.log.server) is not None:
        said = value.model_dump(mode="json", exclude_defaults=True)
        told = await server.call(value.type, said | {"session": shown(stream), "key": key})
        return receipt_from(told, _RECEIPTS.get(type(value), Receipt))
    client.log.check_sees(stream)
    key = None if key is None else key_of(value, key)
    if isinstance(value, DecisionGiven):
        return await decide(client, stream, value, key=key)
    client.log.check_may("send")
    now = await current_session(client.cache, stream)
    match value:
        case StopAsked():
            return await _stop(client, now, value, key)
        case PauseAsked():
            return await _pause(client, now, value, key)
        case ModelChangeAsked():
            value = chosen(client, now, value)
        case MessageSent(name=name, text=text) if name:
            value = value.model_copy(update={"value": json_or_text(text)})
    now.check_takes(value)
    at = await post(client, now, value, key=key)
    await _check_counts(client, now, at)
    return Receipt(**await receipt_fields(client, stream, value.type, at))


def key_of(value: Wish, key: str) -> str:
    """Return the key in the log of a message with a user's *key*."""
    return f"{_KEYS.get(type(value), value.type)}.{key}"


def chosen(client: Connection, now: CurrentSession, value: ModelChangeAsked) -> ModelChangeAsked:
    """Return *value* with the provider and the parameters of its model.

    An address could get the key, and a model can be a file of this machine.

    Raises:
        ConfigError: the model cannot be used.
        ForbiddenError: the person may not choose an address, a key or a file.
    """
    model = value.model
    before, slash, _ = model.model.partition("/")
    provider = model.provider or (before if slash else now.agent.provider)
    if model.base_url or model.key_variable or model.headers or has_model_files(provider):
        client.log.check_may("admin")
    is_name = model == ModelChoice(provider="", model=model.model)
    found = chosen_model(now.agent, model.model if is_name else model, now.allowances)
    return ModelChangeAsked(model=found)


async def _pause(
    client: Connection, now: CurrentSession, value: PauseAsked, key: str | None
) -> PauseReceipt:
    """Ask a session to pause; a repetition records nothing."""
    now.check_takes(value)
    at = None if now.held else await post(client, now, value, key=key)
    if at is not None:
        await _check_counts(client, now, at)
    hold = now.state.hold
    return PauseReceipt(
        **await receipt_fields(client, now.state.stream, value.type, at),
        why="" if at is not None or hold is None else cause_text(hold.cause),
        in_flight=now.state.status in DRIVEN,
    )


async def _stop(
    client: Connection, now: CurrentSession, value: StopAsked, key: str | None
) -> StopReceipt:
    """Ask for the end of a session; without a driver, end it here.

    Raises:
        CuelineError: the session has no driver, and cannot run here; the message says why.
    """
    stream, ended = now.state.stream, now.state.finished
    at = None if ended or now.stopping else await post(client, now, value, key=key)
    told = await receipt_fields(client, stream, value.type, at)
    if not ended and told["read_by"] == "nobody":
        client.place.tries_again(stream)
        await drive_to_end(client.log, stream)
        now = await current_session(client.cache, stream)
        told["read_by"] = "here"
    calls = now.state.turn.calls
    return StopReceipt(
        **told,
        status=str(now.state.status),
        ended_before=ended,
        in_doubt={call.effect: call.tool for call in calls if call.phase == "in_doubt"},
    )


async def _check_counts(client: Connection, now: CurrentSession, at: Appended) -> None:
    """Refuse a message that the session can no longer read.

    The owner of a session reads the inbox once more after the end. Later messages are not read.

    Raises:
        SessionFinishedError: the session ended before it could read the message.
    """
    ended = ""
    async for _, fact in client.log.journal().read(now.state.stream, now.version):
        if isinstance(fact, MessageReceived) and fact.inbox_version == at.versions[0]:
            return
        ended = _ENDS.get(type(fact), ended)
    if ended:
        why = f"it ended before it could read that: {ended}"
        raise SessionFinishedError(shown(now.state.stream), why, now.state.progress is not None)
