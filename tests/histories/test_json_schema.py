"""The printed JSON Schema of the events holds for what a cueline wrote."""

import json

import jsonschema_rs
import pytest

from cueline.events.blob_ref import inlined, with_agent
from cueline.events.codec import FACTS, UPCASTERS, upcast
from cueline.events.json_schema import schema_of, schema_of_all
from tests.histories.test_histories import each_history, lines_of

WHOLE = schema_of_all()
VALIDATORS = {
    name: jsonschema_rs.Draft202012Validator({"$ref": f"#/$defs/{name}", "$defs": WHOLE["$defs"]})
    for name in FACTS
}


def payload_of(line):
    """Return the payload in the present schema, with its long values in their places."""
    blobs = {blob: text.encode() for blob, text in line["blobs"].items()}
    fields = json.loads(with_agent(line["payload"].encode(), None, blobs))
    known = FACTS[line["type"]].SCHEMA
    return upcast(inlined(fields, None, blobs), line["type"], line["schema"], known, UPCASTERS)


@each_history
def test_every_recorded_payload_is_as_its_schema_says(path):
    for line in lines_of(path):
        VALIDATORS[line["type"]].validate(payload_of(line))


@each_history
def test_a_payload_with_an_unknown_field_is_not_as_its_schema_says(path):
    line = lines_of(path)[0]

    assert not VALIDATORS[line["type"]].is_valid({**payload_of(line), "unheard_of": 1})


@pytest.mark.parametrize("name", FACTS)
def test_the_schema_of_one_event_says_the_same_as_the_document(name):
    alone = schema_of(name)
    parts = alone.pop("$defs", {})

    assert WHOLE["$defs"][name] | {"$schema": WHOLE["$schema"]} == alone
    assert parts.items() <= WHOLE["$defs"].items()
