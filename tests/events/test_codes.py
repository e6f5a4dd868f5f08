"""Facts hold codes, names and numbers; only the fields listed here hold words."""

import json
import re
from collections.abc import Iterator
from typing import Any, get_args

import pytest
from pydantic import BaseModel

from cueline.events.codec import FACTS
from tests.histories.record import RECORDED

CODES = {"capability", "error_code", "failure", "kind", "lacking", "status", "stop_reason"}
"""Codes of an open set: kinds of failure, verdicts, a vendor's own."""
NAMES = {
    *(
        "after",
        "agent",
        "action",
        "agents",
        "approval",
        "approvals",
        "asked_by",
        "auto_by",
        "before",
        "blueprint",
        "budget",
        "by",
    ),
    *(
        "channel",
        "child",
        "dependency",
        "digest",
        "effect",
        "effects",
        "excluded",
        "first",
        "grant",
    ),
    *(
        "hash",
        "id",
        "incarnation",
        "key",
        "key_owner",
        "key_variable",
        "limit",
        "machine",
        "may_grant",
        "media_type",
    ),
    "model",
    *(
        "name",
        "names",
        "node",
        "parent",
        "prefix_digest",
        "probe",
        "provider",
        "retry_of",
        "root",
        "runner",
    ),
    *("secrets", "seen", "session", "sessions", "signature", "stream", "tool", "up"),
    *("needs", "own_name", "step", "wait"),
    *("version", "whole", "whose", "zone"),
    *("checkpoint", "namespace", "newest", "task", "thread", "traceparent"),
    *("person", "scopes", "tenant", "token"),
    *("agent", "archive", "archive_hash", "day", "frontier", "status"),
    *("backend", "place", "pool", "volume", "workspace"),
}
"""Streams, effects, digests, people, machines, limits, providers with their models."""
SETTINGS = {
    *("base_url", "command", "commands", "description", "environment", "escalate_to", "headers"),
    *(
        "instructions",
        "labels",
        "limit_sources",
        "parameters",
        "parameters_schema",
        "path",
        "paths",
        "phases",
    ),
    *("prices", "resources", "tags", "target", "tools", "url", "writes"),
    *("for_each", "skipped", "when"),
    *("ask", "env", "idempotent", "mcp", "options", "read", "read_only", "write"),
    *("client_id", "client_secret", "git_token", "network"),
}
"""What the agent file, or whoever starts a session, says."""
CONTENT = {
    *(
        "always",
        "arguments",
        "data",
        "edit",
        "goal",
        "image",
        "malformed",
        "message",
        "note",
        "output",
    ),
    *(
        "error",
        "lost",
        "original_parameters",
        "preview",
        "reason",
        "result",
        "summary",
        "text",
        "told",
    ),
    *("content", "metadata", "values"),
    "state",
}
"""The words of people, models, tools and vendors, and what a model is told."""
WORDS_OF_OTHERS = {"problem", "rule", "unpriced"}
"""How the end of a machine was seen, why a tool or hook failed, who or which rule allows a call."""
KEYS = {"calls", "estimates", "items", "judged", "shares", "streams", "waited"}
"""By the effect, or the limit, that each is of."""
KNOWN = CODES | NAMES | SETTINGS | CONTENT | WORDS_OF_OTHERS | KEYS


def text_fields(model: type[BaseModel], seen: set[type]) -> Iterator[tuple[str, str]]:
    """Tell model and name of each field that may hold any text."""
    if model in seen:
        return
    seen.add(model)
    for name, field in model.model_fields.items():
        for each in parts(field.annotation):
            if each is str and name != "type":
                yield model.__name__, name
            elif isinstance(each, type) and issubclass(each, BaseModel):
                yield from text_fields(each, seen)


def parts(annotation: Any) -> Iterator[Any]:
    """Tell what an annotation is made of; the words of a literal are values, and no types."""
    yield annotation
    for each in get_args(annotation):
        yield from parts(each)


def test_every_field_that_may_hold_a_text_is_a_code_a_name_or_known_to_hold_words():
    seen: set[type] = set()
    found = [pair for fact in FACTS.values() for pair in text_fields(fact, seen)]

    assert [] == [(model, name) for model, name in found if name not in KNOWN]
    assert set() == KNOWN - {name for _, name in found}


def texts(value: Any, name: str = "") -> Iterator[tuple[str, str]]:
    """Tell field and text of all that *value* holds, but for what is content or settings."""
    if name in CONTENT | SETTINGS:
        return
    match value:
        case str():
            yield name, value
        case dict():
            for key, each in value.items():
                yield from texts(each, key)
        case list():
            for each in value:
                yield from texts(each, name)


RECORDED_TEXTS = [
    (path.stem, line["type"], name, text)
    for path in sorted(RECORDED.glob("*.jsonl"))
    for line in map(json.loads, path.read_text().splitlines())
    for name, text in texts(json.loads(line["payload"]))
]


@pytest.mark.parametrize(
    ("names", "shape"),
    [(CODES, r"[a-z_]+"), ({"code"}, r"[a-z_]+"), (NAMES, r"\S*( \S+)?")],
    ids=["codes", "code", "names"],
)
def test_no_code_and_no_name_that_was_recorded_is_a_sentence(names, shape):
    told = [each for each in RECORDED_TEXTS if each[2] in names]

    assert told
    assert [] == [each for each in told if not re.fullmatch(shape, each[3])]
