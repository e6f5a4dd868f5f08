"""What a cueline wrote is read by every later one."""

import json
from pathlib import Path

import pytest

from cueline.events.codec import FACTS, Codec
from cueline.events.store import RecordedEvent

RECORDED = Path(__file__).parent / "recorded"
HISTORIES = sorted(RECORDED.glob("*.jsonl"))
each_history = pytest.mark.parametrize("path", HISTORIES, ids=lambda p: p.stem)


def lines_of(path):
    with path.open(encoding="utf-8") as file:
        return [json.loads(line) for line in file]


def decode(line, version):
    payload = line["payload"].encode()
    event = RecordedEvent(
        "session-default/7f3a", version, version, line["type"], line["schema"], payload,
        0, 0, 1, "agent", None, None, None, 0, 0, b"", b"", b"",
    )  # fmt: skip
    return Codec().decode(event, {blob: text.encode() for blob, text in line["blobs"].items()})


@each_history
def test_every_recorded_line_is_read(path):
    facts = [decode(line, n) for n, line in enumerate(lines_of(path), start=1)]

    assert [line["type"] for line in lines_of(path)] == [fact.type for fact in facts]


@each_history
def test_every_line_of_the_present_schema_is_written_as_it_was(path):
    for n, line in enumerate(lines_of(path), start=1):
        fact = decode(line, n)
        draft = Codec().encode(fact, actor="agent", occurred_us=0).draft

        assert line["schema"] != draft.schema or line["payload"].encode() == draft.payload


@pytest.mark.parametrize("fact", FACTS.values(), ids=FACTS)
def test_every_schema_of_a_fact_has_a_recorded_line(fact):
    recorded = {(line["type"], line["schema"]) for path in HISTORIES for line in lines_of(path)}

    assert {(fact.__name__, n) for n in range(1, fact.SCHEMA + 1)} <= recorded
