"""References in a payload to blobs with long texts, and with a fact's agent.

The agent's reference is at the start of the payload, so a thousand sessions of one agent
store the agent once.
"""

import hashlib
import json
from collections.abc import Iterator, Mapping
from itertools import chain
from typing import Any

from pydantic_core import to_json

from cueline.errors import BlobTooLargeError, CorruptEventError, MissingBlobError
from cueline.events.store import BLOB_LIMIT, INLINE_LIMIT, RecordedEvent

_BLOB = "$blob"
_MARK = b'$blob"'
_AGENT_REF = b'{"agent":{"$blob":"'
_REF_END = b"}"


def may_name_blobs(payload: bytes) -> bool:
    """Whether *payload* may contain a reference; `False` is certain."""
    # `in` creates and drops an error before it searches bytes.
    return payload.find(_MARK) >= 0


def blobs_in(payload: bytes | None) -> tuple[str, ...]:
    """Return the blobs that *payload* needs before it can be decoded."""
    if payload is None or not may_name_blobs(payload):
        return ()
    try:
        return tuple(_references(json.loads(payload)))
    except ValueError:
        return ()  # `decode` reports the fault


def with_agent_ref(payload: bytes, agent: bytes, blobs: dict[str, bytes]) -> bytes:
    """Return *payload* with a reference to its *agent*; add the agent to *blobs*."""
    if may_name_blobs(agent):
        agent = to_json(
            _outline(json.loads(agent), None)
        )  # kept whole, except what looks like a reference
    blob = hashlib.sha256(agent).hexdigest()
    blobs[blob] = agent
    rest = b"" if payload == b"{}" else b"," + payload[1:-1]
    return b'%s%s","bytes":%d}%s}' % (_AGENT_REF, blob.encode(), len(agent), rest)


def agent_ref(payload: bytes) -> str:
    """Return the blob of the agent that *payload* refers to; empty without a reference."""
    if not payload.startswith(_AGENT_REF):
        return ""
    return payload[len(_AGENT_REF) :].partition(b'"')[0].decode(errors="replace")


def with_another_agent(payload: bytes, agent: bytes) -> bytes:
    """Return *payload*, which refers to an agent, with *agent* instead."""
    return b'{"agent":%s%s' % (agent, payload.partition(_REF_END)[2])


def with_agent(payload: bytes, recorded: RecordedEvent, blobs: Mapping[str, bytes]) -> bytes:
    """Return *payload* with the agent instead of the agent's reference; undoes `with_agent_ref`."""
    blob = agent_ref(payload)
    if not blob or _REF_END not in payload:
        return payload
    return with_another_agent(payload, _content(blob, recorded, blobs))


def outlined(payload: bytes) -> tuple[bytes, dict[str, bytes]]:
    """Return *payload* with references instead of long texts, and the long texts."""
    blobs: dict[str, bytes] = {}
    return to_json(_outline(json.loads(payload), blobs)), blobs


def _outline(value: Any, blobs: dict[str, bytes] | None) -> Any:
    """Replace long texts in *value* by references, and add them to *blobs*."""
    match value:
        # A character has at most 4 bytes.
        case str() if blobs is not None and len(value) > INLINE_LIMIT // 4:
            content = value.encode()
            if len(content) <= INLINE_LIMIT:
                return value
            if len(content) > BLOB_LIMIT:
                raise BlobTooLargeError(len(content), BLOB_LIMIT)
            blob = hashlib.sha256(content).hexdigest()
            blobs[blob] = content
            return {_BLOB: blob, "bytes": len(content)}
        case dict():
            return {_marked(key): _outline(item, blobs) for key, item in value.items()}
        case list():
            return [_outline(item, blobs) for item in value]
    return value


def inlined(value: Any, recorded: RecordedEvent, blobs: Mapping[str, bytes]) -> Any:
    """Return *value* with long texts instead of references; undoes `_outline`."""
    match value:
        case {"$blob": str(blob)}:
            return _content(blob, recorded, blobs).decode()
        case dict():
            items = value.items()
            return {_unmarked(key): inlined(item, recorded, blobs) for key, item in items}
        case list():
            return [inlined(item, recorded, blobs) for item in value]
    return value


def _content(blob: str, recorded: RecordedEvent, blobs: Mapping[str, bytes]) -> bytes:
    if blob not in blobs:
        raise MissingBlobError(recorded.stream, blob)
    if hashlib.sha256(blobs[blob]).hexdigest() != blob:
        raise CorruptEventError(*recorded[:3], f"blob {blob} holds another content")
    return blobs[blob]


def _references(value: Any) -> Iterator[str]:
    match value:
        case {"$blob": str(blob)}:
            yield blob
        case dict():
            yield from chain.from_iterable(map(_references, value.values()))
        case list():
            yield from chain.from_iterable(map(_references, value))


def _marked(key: str) -> str:
    """Return *key* changed so that it cannot be mistaken for a reference."""
    return f"${key}" if key.startswith("$") and key.lstrip("$") == "blob" else key


def _unmarked(key: str) -> str:
    return key[1:] if key.startswith("$$") and key.lstrip("$") == "blob" else key
