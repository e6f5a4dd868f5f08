"""What facts become in the log, and that they come back as they went."""

import hashlib
import json

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from cueline.errors import (
    BlobTooLargeError,
    CorruptEventError,
    MissingBlobError,
    UnknownEventTypeError,
)
from cueline.events import blob_ref as module
from cueline.events.agent import AgentSpec
from cueline.events.blob_ref import blobs_in
from cueline.events.codec import FACTS, Codec, Redacted, blobs_named
from cueline.events.inbox import MessageSent, StartAsked
from cueline.events.message import TextBlock, ToolCall
from cueline.events.session import (
    FileChange,
    MessageReceived,
    ModelReplied,
    SessionStarted,
    ToolReturned,
    ToolStarted,
)
from cueline.events.store import INLINE_LIMIT, from_us
from tests.drawn import drawn

LONG = "é" * INLINE_LIMIT
STARTED = ToolStarted(
    effect="1.0", attempt=1, tool="read_file", runner="r1", epoch=3, rule="read_only"
)
each_fact = pytest.mark.parametrize("fact", FACTS.values(), ids=FACTS)
quick = settings(
    max_examples=drawn(30), suppress_health_check=[HealthCheck.too_slow], deadline=None
)


def encode(fact, codec=None):
    return (codec or Codec()).encode(fact, actor="agent", occurred_us=1)


def asked(arguments):
    call = ToolCall(id="c1", name="write_file", arguments=arguments)
    return ModelReplied(effect="1.m", attempt=1, calls=(call,), stop_reason="tool_use")


@each_fact
@quick
@given(data=st.data())
def test_every_fact_comes_back_as_it_went(fact, data, facts_of, recorded):
    sent = data.draw(facts_of(fact))
    event = recorded(sent)

    codec, blobs = Codec(), encode(sent).blobs
    came = codec.decode(event, blobs)

    assert (fact, sent) == (type(came), came)
    assert came == codec.decode(event, blobs), "it may have kept the agent"
    assert event.payload == encode(came).draft.payload


@given(value=st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0")))
def test_text_comes_back_as_it_went(value, recorded):
    sent = ToolReturned(effect="1.0", attempt=1, output=value)

    assert sent == Codec().decode(recorded(sent))


def test_a_payload_holds_neither_its_type_nor_what_is_at_its_default():
    fact = ToolReturned(effect="1.0", attempt=1, output="found")

    assert b'{"effect":"1.0","attempt":1,"output":"found"}' == encode(fact).draft.payload


def test_a_recorded_agent_holds_its_defaults():
    agent = AgentSpec(name="a", provider="scripted", model="m")
    fact = SessionStarted(agent=agent, goal=None, open=True, attached=False, epoch=1)

    kept = json.loads(*encode(fact).blobs.values())

    assert (50, 3) == (kept["limits"]["max_turns"], kept["retry"]["max_retries"])


def test_facts_with_the_same_agent_hold_it_once():
    agent = AgentSpec(name="a", provider="scripted", model="m")
    started = SessionStarted(agent=agent, goal=None, open=True, attached=False, epoch=1)
    asked = StartAsked(agent=agent, goal="Begin.", asked_at=from_us(0))

    first, second = encode(asked), encode(started)

    assert first.blobs == second.blobs
    assert len(first.draft.payload) < 300 < len(*first.blobs.values())


def test_facts_with_the_same_agent_share_it(recorded):
    agent = AgentSpec(name="a", provider="scripted", model="m")
    started = SessionStarted(agent=agent, goal=None, open=True, attached=False, epoch=1)
    asked = StartAsked(agent=agent, goal="Begin.", asked_at=from_us(0))
    codec = Codec()

    first = codec.decode(recorded(started), encode(started).blobs)
    second = codec.decode(recorded(asked))

    assert second == asked
    assert second.agent is first.agent


def test_an_agent_that_speaks_of_blobs_comes_back_as_it_went(recorded):
    agent = AgentSpec(
        name="a", provider="scripted", model="m",
        parameters={"$blob": "no blob of ours", "long": LONG},
    )  # fmt: skip
    fact = SessionStarted(agent=agent, goal=LONG, open=True, attached=False, epoch=1)
    event = recorded(fact)

    assert fact == Codec().decode(event, encode(fact).blobs)
    assert encode(fact).blobs.keys() == {*blobs_in(event.payload)}


def test_the_facets_of_a_fact_are_in_its_attributes():
    assert '{"tool":"read_file"}' == encode(STARTED).draft.attrs


def test_empty_facets_are_left_out():
    assert encode(ModelReplied(effect="1.m", attempt=1, stop_reason="end_turn")).draft.attrs is None


def test_a_draft_says_who_when_and_why():
    draft = (
        Codec()
        .encode(
            STARTED, actor="user:ann", occurred_us=7, step=2, causation_id="k", correlation_id="s"
        )
        .draft
    )

    assert ("user:ann", 7, 2, "k", "s") == (
        draft.actor,
        draft.occurred_us,
        draft.step,
        draft.causation_id,
        draft.correlation_id,
    )


@pytest.mark.parametrize(
    "fact",
    [
        ToolReturned(effect="1.0", attempt=1, output=LONG),
        asked({"path": "a", "lines": [LONG, {"deep": LONG + "."}]}),
        ModelReplied(
            effect="1.m", attempt=1, content=(TextBlock(text=LONG),), stop_reason="end_turn"
        ),
        MessageReceived(
            inbox_version=2, recorded_at=from_us(1), message=MessageSent(lane="note", text=LONG)
        ),
    ],
    ids=["output", "arguments", "content", "message"],
)
def test_a_long_text_goes_to_a_blob_wherever_it_is(fact, recorded):
    encoded = encode(fact)

    assert len(encoded.draft.payload) < INLINE_LIMIT
    assert set(encoded.draft.blobs) == set(blobs_in(encoded.draft.payload)) == set(encoded.blobs)
    assert fact == Codec().decode(recorded(fact), encoded.blobs)


def test_a_blob_is_named_by_its_content():
    encoded = encode(ToolReturned(effect="1.0", attempt=1, output=LONG))

    assert {hashlib.sha256(LONG.encode()).hexdigest(): LONG.encode()} == encoded.blobs


def test_the_blob_of_a_whole_output_is_named_too():
    draft = encode(ToolReturned(effect="1.0", attempt=1, output="cut", whole="ab" * 32)).draft

    assert (("ab" * 32,), ()) == (draft.blobs, blobs_in(draft.payload))


def test_the_blobs_of_changed_files_are_named_too(recorded):
    named = (("a", "ab" * 32), ("b", None))
    changes = tuple(FileChange(path, blob, "cd" * 32, "", None) for path, blob in named)
    fact = ToolReturned(effect="1.0", attempt=1, output="x", changes=changes)

    assert ("ab" * 32,) == encode(fact).draft.blobs == blobs_named(recorded(fact))
    assert fact == Codec().decode(recorded(fact))
    assert b"changes" not in encode(fact.model_copy(update={"changes": ()})).draft.payload


@pytest.mark.parametrize("size", [INLINE_LIMIT, INLINE_LIMIT + 1])
def test_only_what_is_over_the_limit_goes_to_a_blob(size):
    assert (size > INLINE_LIMIT) == bool(encode(asked({"text": "x" * size})).blobs)


@pytest.mark.parametrize("key", ["$blob", "$$blob", "$$$blob", "blob", "$", "$$", "$$x"])
@pytest.mark.parametrize("text", ["ab" * 32, LONG], ids=["short", "long"])
def test_a_value_that_looks_like_a_reference_is_unchanged(key, text, recorded):
    fact = asked({key: text, "bytes": 4})

    assert fact == Codec().decode(recorded(fact), encode(fact).blobs)


def test_what_is_over_the_limit_of_blobs_is_refused(monkeypatch):
    monkeypatch.setattr(module, "BLOB_LIMIT", len(LONG))

    with pytest.raises(BlobTooLargeError):
        encode(ToolReturned(effect="1.0", attempt=1, output=LONG))


@pytest.mark.parametrize("payload", [None, b"{}", b'{"$blob', b'["$blob"'])
def test_a_payload_that_names_no_blob_or_is_damaged_needs_none(payload):
    assert () == blobs_in(payload)


@pytest.mark.parametrize("payload", [None, b"", b"[]", b'{"whole":1}', b'{"effect":"1.0"}'])
def test_a_payload_that_is_damaged_or_keeps_nothing_apart_names_nothing(payload, recorded):
    event = recorded(ToolReturned(effect="1.0", attempt=1, output=""), payload=payload)

    assert () == blobs_named(event)


def test_what_an_event_keeps_apart_is_named_beside_what_it_needs(recorded):
    event = recorded(ToolReturned(effect="1.0", attempt=1, output=LONG, whole="ab"))

    assert (*blobs_in(event.payload), "ab") == blobs_named(event)
    assert () == blobs_named(recorded(STARTED))


def test_a_missing_blob_is_named(recorded):
    event = recorded(ToolReturned(effect="1.0", attempt=1, output=LONG))

    with pytest.raises(MissingBlobError) as raised:
        Codec().decode(event)

    assert blobs_in(event.payload) == (raised.value.blob,)


def test_a_blob_of_another_content_is_corrupt(recorded):
    event = recorded(ToolReturned(effect="1.0", attempt=1, output=LONG))

    with pytest.raises(CorruptEventError, match="holds another content"):
        Codec().decode(event, dict.fromkeys(blobs_in(event.payload), b"other"))


def test_a_redacted_event_keeps_its_type(recorded):
    assert Redacted("ToolStarted") == Codec().decode(recorded(STARTED, payload=None))


@pytest.mark.parametrize("change", [{"type": "ToolJuggled"}, {"schema": 2}], ids=str)
def test_an_event_of_a_newer_cueline_is_set_aside(change, recorded):
    with pytest.raises(UnknownEventTypeError, match="session-default/7f3a@3: unknown event"):
        Codec().decode(recorded(STARTED, **change))


BROKEN = [
    b"",
    b"{",
    b"[]",
    b"null",
    b"\xff",
    b'{"effect":1}',
    b'{"$blob":"x"}',
    b'{"a":{"$blob":1}}',
]


@pytest.mark.parametrize("payload", BROKEN)
def test_bytes_that_say_nothing_are_named_by_their_position(payload, recorded):
    with pytest.raises((CorruptEventError, MissingBlobError)) as raised:
        Codec().decode(recorded(STARTED, payload=payload))

    assert "session-default/7f3a" in str(raised.value)


def test_an_error_does_not_quote_what_was_recorded(recorded):
    event = recorded(STARTED, payload=b'{"effect":{"words":"of a person"}}')

    with pytest.raises(CorruptEventError) as raised:
        Codec().decode(event)

    assert "session-default/7f3a@3 (position 12): effect" in str(raised.value)
    assert "of a person" not in str(raised.value)
    assert raised.value.__cause__ is None


@each_fact
def test_a_fact_is_named_as_its_class(fact):
    assert fact.__name__ == fact.model_fields["type"].default
