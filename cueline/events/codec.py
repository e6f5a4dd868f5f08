"""Encodes facts as bytes, and decodes recorded events.

To change the shape of a released fact, raise its `SCHEMA` by one, and add the upcaster
from the previous schema to `UPCASTERS`. Recorded bytes never change.

A payload has its fields in the order of the frozen model, and the keys of an object in
their given order. A payload omits `type`, which is a column. A fact of plain values omits
fields with default values. So neither a default nor the meaning of a fact changes within
a schema. Long values are replaced by references: see `blob_ref`.
"""

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from itertools import chain
from types import MappingProxyType
from typing import Any, Final, cast, get_args, get_origin

from msgspec import Struct
from pydantic import BaseModel, ValidationError
from pydantic_core import SchemaSerializer, SchemaValidator, to_json

from cueline.errors import CorruptEventError, SecretLeakError, UnknownEventTypeError
from cueline.events.approval import ApprovalEvent
from cueline.events.blob_ref import (
    agent_ref,
    blobs_in,
    inlined,
    may_name_blobs,
    outlined,
    with_agent,
    with_agent_ref,
    with_another_agent,
)
from cueline.events.breaker import BreakerEvent
from cueline.events.budget import BudgetEvent, DescendantAsked
from cueline.events.checkpoint import CheckpointEvent
from cueline.events.fact import Fact
from cueline.events.fleet import DispatcherEvent, FleetEvent
from cueline.events.inbox import InboxMessage
from cueline.events.proposal import ProposalRejected
from cueline.events.retention import SessionEmptied
from cueline.events.sandbox import SandboxEvent, SlotEvent
from cueline.events.sanitize import Redactor, needs_sanitizing, sanitize
from cueline.events.seal import LogSealed
from cueline.events.session import SessionEvent
from cueline.events.store import INLINE_LIMIT, Draft, RecordedEvent
from cueline.events.telemetry import SpansExported
from cueline.events.token import TokenEvent

Payload = dict[str, Any]
Upcaster = Callable[[Payload], Payload]
"""A pure function that converts a payload to the next schema; it accepts every old payload."""

UPCASTERS: Final[Mapping[tuple[str, int], Upcaster]] = {}
"""The upcasters, by type and old schema."""


def upcast(
    payload: Payload,
    type: str,  # noqa: A002 - the field's name in the log
    schema: int,
    known: int,
    steps: Mapping[tuple[str, int], Upcaster],
) -> Payload:
    """Return *payload*, of *schema*, in the schema *known*.

    Raises:
        KeyError: a step is missing; a bug, because each schema has an upcaster.
    """
    for number in range(schema, known):
        payload = steps[type, number](payload)
    return payload


FACTS: Final[Mapping[str, type[Fact]]] = {
    fact.model_fields["type"].default: fact
    for fact in chain(
        get_args(SessionEvent),
        get_args(get_args(InboxMessage)[0]),
        get_args(ApprovalEvent),
        get_args(BudgetEvent),
        get_args(BreakerEvent),
        get_args(DispatcherEvent),
        get_args(FleetEvent),
        get_args(CheckpointEvent),
        get_args(TokenEvent),
        get_args(SandboxEvent),
        get_args(SlotEvent),
        (DescendantAsked, ProposalRejected, LogSealed, SessionEmptied, SpansExported),
    )
}
"""The class of every fact that this cueline can read, by type."""

EMPTIED: Final = "it was emptied: its session can be looked at, but not gone on with"
"""The text of the error for a redacted event that the rules need to continue a session."""

_WHOLE = "whole"
"""The field that contains the hash of a blob."""
_CHANGES = "changes"
"""The field with the changed files, whose `before` is the hash of a blob."""
_WHOLE_KEY, _CHANGES_KEY = (f'"{name}":'.encode() for name in (_WHOLE, _CHANGES))
_TYPE = {"type"}
_NO_AGENT = b'{"name":"","provider":"","model":""}'
_AGENTS: Final = 100
"""The most agents that a codec keeps."""
_AGENT = "agent"


@dataclass(frozen=True, slots=True)
class Redacted:
    """An event whose payload was redacted; it changes nothing."""

    type: str


class Encoded(Struct, frozen=True):
    """An encoded fact, and the long values to store before it."""

    draft: Draft
    blobs: Mapping[str, bytes]


@dataclass(frozen=True, slots=True)
class _Shape:
    """The encoding of one type of fact."""

    serializer: SchemaSerializer
    validator: SchemaValidator
    schema: int
    facets: tuple[str, ...]
    plain: bool
    """Whether the fact has plain values only.

    Parts are encoded with their defaults: a tag identifies a part, and an agent is recorded whole.
    """
    names_blob: bool
    has_agent: bool


class Codec:
    """Encodes facts as drafts, and decodes recorded events."""

    def __init__(
        self,
        redactor: Redactor | None = None,
        upcasters: Mapping[tuple[str, int], Upcaster] = UPCASTERS,
        facts: Mapping[str, type[Fact]] = FACTS,
    ) -> None:
        self.redactor = redactor or Redactor()
        self._upcasters = upcasters
        self._facts = facts
        self._readers: dict[tuple[str, int], Callable[[bytes], Fact]] = {}
        self._agents: dict[str, object] = {}
        """The agents that were decoded, by blob."""

    def encode(
        self,
        fact: Fact,
        *,
        actor: str,
        occurred_us: int,
        step: int = 0,
        correlation_id: str | None = None,
        causation_id: str | None = None,
    ) -> Encoded:
        """Return *fact* as a draft, with the blobs to store first.

        Raises:
            SecretLeakError: the text was not sanitized; a bug, and nothing may be written.
            BlobTooLargeError: a value is over the limit; shorten it.
        """
        type_ = fact.type
        shape = _shape_of(self._facts[type_])
        payload, agent = self._payload(fact, shape)
        blobs: dict[str, bytes] = {}
        if len(payload) > INLINE_LIMIT or may_name_blobs(payload):
            payload, blobs = outlined(payload)
        if agent:
            payload = with_agent_ref(payload, agent, blobs)
        names = shape.names_blob and (getattr(fact, _WHOLE) or getattr(fact, _CHANGES))
        draft = Draft(
            type_,
            shape.schema,
            payload,
            occurred_us,
            # No rule reads it, so sanitizing it here is early enough (I11).
            sanitize(actor, self.redactor)[0] if ":" in actor else actor,
            _facets(fact, shape.facets) if shape.facets else None,
            correlation_id,
            causation_id,
            step,
            (*blobs, *_named(vars(fact))) if names else tuple(blobs),
        )
        return Encoded(draft, blobs)

    def decode(
        self, recorded: RecordedEvent, blobs: Mapping[str, bytes] = MappingProxyType({})
    ) -> Fact | Redacted:
        """Return the fact of *recorded*; *blobs* has the contents that `blobs_in` names.

        Raises:
            UnknownEventTypeError: upgrade cueline; only this stream is affected.
            CorruptEventError: the payload is invalid; restore the log.
            MissingBlobError: *blobs* lacks a long value; get it first.
        """
        payload = recorded.payload
        if payload is None:
            return Redacted(recorded.type)
        if may_name_blobs(payload):
            return self._decode_with_blobs(recorded, payload, blobs)
        read = self._readers.get((recorded.type, recorded.schema))
        if read is None and (read := self._reader(recorded)) is None:
            return self._decode_slowly(recorded, payload, blobs)
        try:
            return read(payload)
        except ValidationError as error:
            # Not chained: its text quotes the payload.
            raise _corrupt(recorded, _reason(error)) from None

    def _decode_with_blobs(
        self, recorded: RecordedEvent, payload: bytes, blobs: Mapping[str, bytes]
    ) -> Fact:
        """Decode a payload with references; facts with the same agent share it."""
        blob = agent_ref(payload)
        if (known := self._agents.get(blob)) is None:
            payload = with_agent(payload, recorded, blobs)
        else:
            payload = with_another_agent(payload, _NO_AGENT)
        if may_name_blobs(payload):
            fact = self._decode_slowly(recorded, payload, blobs)
        else:
            fact = cast("Fact", self.decode(recorded._replace(payload=payload)))
        if known is not None:
            vars(fact)[_AGENT] = known  # agents are long, and many sessions have the same one
        elif blob and isinstance(vars(fact)[_AGENT], BaseModel):
            if len(self._agents) >= _AGENTS:
                self._agents.clear()
            self._agents[blob] = vars(fact)[_AGENT]
        return fact

    def check_blob(self, content: bytes) -> None:
        """Raise if *content* holds a secret.

        Raises:
            SecretLeakError: the text was not sanitized; a bug, and nothing may be written.
        """
        if self.redactor.redact(content.decode(errors="surrogateescape"))[1]:
            raise SecretLeakError("blob", "a known secret")

    def _payload(self, fact: Fact, shape: _Shape) -> tuple[bytes, bytes]:
        """Return the payload and agent of *fact*; raise if sanitizing would change them (I11)."""
        agent = b""
        try:
            if shape.plain:
                payload = shape.serializer.to_json(fact, exclude_defaults=True)
            elif shape.has_agent:
                payload = shape.serializer.to_json(fact, exclude={"type", _AGENT})
                agent = to_json(getattr(fact, _AGENT))
            else:
                payload = shape.serializer.to_json(fact, exclude=_TYPE)
        except ValueError as error:
            raise SecretLeakError(fact.type, "what JSON cannot say") from error
        if needs_sanitizing(agent + payload, self.redactor) and sanitize(fact, self.redactor)[1]:
            raise SecretLeakError(fact.type, "a known secret, or a value that was not cleaned")
        return payload, agent

    def _reader(self, recorded: RecordedEvent) -> Callable[[bytes], Fact] | None:
        """Return what decodes the type and schema of *recorded*; None for another schema."""
        fact = self._facts.get(recorded.type)
        if fact is None or recorded.schema != fact.SCHEMA:
            return None
        read: Callable[[bytes], Fact] = _shape_of(fact).validator.validate_json
        self._readers[recorded.type, recorded.schema] = read
        return read

    def _decode_slowly(
        self, recorded: RecordedEvent, payload: bytes, blobs: Mapping[str, bytes]
    ) -> Fact:
        """Decode a payload with references to blobs, or with an old schema."""
        fact = self._facts.get(recorded.type)
        if fact is None or recorded.schema > fact.SCHEMA:
            raise UnknownEventTypeError(
                recorded.stream, recorded.version, recorded.type, recorded.schema
            )
        try:
            fields = inlined(json.loads(payload), recorded, blobs)
            fields = upcast(fields, recorded.type, recorded.schema, fact.SCHEMA, self._upcasters)
            return fact.model_validate_json(to_json(fields))
        except ValidationError as error:
            raise _corrupt(recorded, _reason(error)) from None
        except (ValueError, KeyError, TypeError, RecursionError) as error:
            raise _corrupt(recorded, f"the payload cannot be read: {error}") from None


def not_redacted(recorded: RecordedEvent, fact: Fact | Redacted) -> Fact:
    """Return *fact*, decoded from *recorded*, unless the rules cannot work without its payload.

    Raises:
        CorruptEventError: the payload was redacted, and the rules need it; restore the log.
    """
    if isinstance(fact, Redacted):
        raise _corrupt(recorded, EMPTIED)
    return fact


def blobs_named(recorded: RecordedEvent) -> tuple[str, ...]:
    """Return every blob that *recorded* names, also blobs that decoding does not need."""
    needed = blobs_in(recorded.payload)
    fact = FACTS.get(recorded.type)
    payload = recorded.payload
    if payload is None or fact is None or not _shape_of(fact).names_blob:
        return needed
    # To parse each of them would take a third of the check of a log.
    if payload.find(_WHOLE_KEY) < 0 and payload.find(_CHANGES_KEY) < 0:
        return needed
    try:
        return (*needed, *_named(json.loads(payload)))
    except (ValueError, AttributeError, TypeError):
        return needed  # as above


def _named(fields: Mapping[str, Any]) -> Iterator[str]:
    """Yield the blobs that the *fields* of a fact name."""
    changes = (each if isinstance(each, dict) else vars(each) for each in fields.get(_CHANGES, ()))
    named = [fields.get(_WHOLE), *(each["before"] for each in changes)]
    yield from (blob for blob in named if isinstance(blob, str))


@cache
def _shape_of(fact: type[Fact]) -> _Shape:
    fact.model_rebuild()  # it is built when it is first needed
    annotations = [field.annotation for field in fact.model_fields.values()]
    return _Shape(
        serializer=fact.__pydantic_serializer__,
        validator=cast("SchemaValidator", fact.__pydantic_validator__),
        schema=fact.SCHEMA,
        facets=fact.FACETS,
        plain=not any(_mentions(a, BaseModel) for a in annotations),
        names_blob=_WHOLE in fact.model_fields,
        has_agent=_AGENT in fact.model_fields,
    )


def _mentions(annotation: object, kind: type) -> bool:
    itself = get_origin(annotation) or annotation
    if isinstance(itself, type) and issubclass(itself, kind):
        return True
    return any(_mentions(part, kind) for part in get_args(annotation))


def _facets(fact: Fact, names: tuple[str, ...]) -> str | None:
    facets = {name: value for name in names if (value := getattr(fact, name))}
    return to_json(facets).decode() if facets else None


def _corrupt(recorded: RecordedEvent, reason: str) -> CorruptEventError:
    return CorruptEventError(recorded.stream, recorded.version, recorded.position, reason)


def _reason(error: ValidationError) -> str:
    """Return the text of *error* without values of the payload."""
    first = error.errors(include_url=False, include_context=False, include_input=False)[0]
    place = ".".join(map(str, first["loc"]))
    return f"{place}: {first['msg']}" if place else first["msg"]
