"""How a fact whose shape has changed is still read: the worked example of an upcaster."""

from typing import ClassVar, Literal

import pytest

from cueline.errors import CorruptEventError
from cueline.events.codec import FACTS, UPCASTERS, Codec
from cueline.events.fact import Fact


class Moved(Fact):
    """A fact whose shape has changed twice."""

    type: Literal["Moved"] = "Moved"
    SCHEMA: ClassVar[int] = 3
    path: str
    by: str


STEPS = {
    ("Moved", 1): lambda old: {"path": old["file"]},
    ("Moved", 2): lambda old: old | {"by": "nobody"},
}


@pytest.mark.parametrize(
    ("schema", "payload", "expected"),
    [
        (1, b'{"file":"a"}', Moved(path="a", by="nobody")),
        (2, b'{"path":"a"}', Moved(path="a", by="nobody")),
        (3, b'{"path":"a","by":"b"}', Moved(path="a", by="b")),
    ],
)
def test_old_schemas_become_the_present_one(schema, payload, expected, recorded):
    codec = Codec(upcasters=STEPS, facts={"Moved": Moved})
    event = recorded(expected, codec, schema=schema, payload=payload)

    assert expected == codec.decode(event)


def test_a_schema_without_its_upcaster_is_told_by_position(recorded):
    codec = Codec(upcasters={}, facts={"Moved": Moved})
    event = recorded(Moved(path="a", by="b"), codec, schema=1, payload=b'{"file":"a"}')

    with pytest.raises(CorruptEventError, match="position 12"):
        codec.decode(event)


@pytest.mark.parametrize("fact", FACTS.values(), ids=FACTS)
def test_every_old_schema_has_its_upcaster(fact):
    assert all((fact.__name__, schema) in UPCASTERS for schema in range(1, fact.SCHEMA))
