"""Nothing hostile gets into the log: what JSON, a text or a reader cannot take."""

import json
import math
from contextlib import nullcontext
from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cueline.errors import SecretLeakError
from cueline.events.codec import Codec
from cueline.events.message import ToolCall, Usage
from cueline.events.sanitize import (
    MAX_DEPTH,
    REDACTED,
    TOO_DEEP,
    sanitize,
    sanitize_record,
)
from cueline.events.session import ToolReturned
from tests.events.cleaning import CANARY, REDACTOR, encode, replied, sanitised

HOSTILE = {
    "nul": ("a\0b", "a\ufffdb"),
    "surrogate": ("a\ud800b", "a\ufffdb"),
    "two halves of one character": ("a\ud83d\ude00b\ud83d", "a\U0001f600b\ufffd"),
    "nan": ([math.nan], ["NaN"]),
    "infinity": ([math.inf, -math.inf], ["Infinity", "-Infinity"]),
    "huge": ([10**5000], ["[number too large]"]),
    "key": ({"a\0": 1}, {"a\ufffd": 1}),
    "keys": ({"a\0": 1, "a\ufffd": 2}, {"a\ufffd": 1, "a\ufffd_": 2}),
}


@pytest.mark.parametrize(("value", "expected"), HOSTILE.values(), ids=HOSTILE)
def test_hostile_values_become_harmless(value, expected):
    assert (expected, True) == sanitised(value)
    assert (expected, False) == sanitised(expected)


@pytest.mark.parametrize("number", [2**63, -(2**63) - 1, 10**400])
def test_an_integer_of_any_size_stays_one(number):
    fact = replied({"n": [number]})

    assert ({"n": [number]}, False) == sanitised({"n": [number]})
    assert str(number).encode() in encode(fact).draft.payload
    returned = ToolReturned(effect="1.0", attempt=1, output="", value=number)
    assert (returned, False) == sanitised(returned)


@pytest.mark.parametrize(("value", "_"), HOSTILE.values(), ids=HOSTILE)
def test_a_fact_with_hostile_values_is_refused_until_it_is_cleaned(value, _):
    with pytest.raises(SecretLeakError):
        encode(replied({"value": value}))

    assert encode(sanitize(replied({"value": value}), REDACTOR)[0]).draft.payload


def test_an_argument_whose_name_is_no_text_is_recorded_as_it_is_decided_on():
    fact = replied({"a\ud800": 1})

    with pytest.raises(SecretLeakError):
        encode(fact)

    assert {"a\ufffd": 1} == sanitize_record(fact, REDACTOR).calls[0].arguments


ANYTHING = st.recursive(
    st.none() | st.floats() | st.integers() | st.text() | st.sampled_from([CANARY, 2**63]),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
)


@given(ANYTHING)
def test_a_fact_is_refused_exactly_where_cleaning_changes_it(value):
    fact = replied({"value": value})
    kept, changed = sanitize(fact, REDACTOR)

    if changed:
        with pytest.raises(SecretLeakError):
            encode(fact, Codec(REDACTOR))
    assert encode(kept, Codec(REDACTOR)).draft.payload


@given(ANYTHING)
def test_a_record_is_cleaned_like_any_value(value):
    fact = replied({"value": value})
    kept, changed = sanitize(fact, REDACTOR)

    assert kept == sanitize_record(fact, REDACTOR)
    assert changed or fact is sanitize_record(fact, REDACTOR)


@pytest.mark.parametrize("value", ["\ud800", {"\ud800": CANARY}])
def test_a_record_that_json_cannot_say_is_cleaned(value):
    fact = replied({"value": value})

    assert sanitize(fact, REDACTOR)[0] == sanitize_record(fact, REDACTOR)
    assert fact != sanitize_record(fact, REDACTOR)


# Of the secret no character is left that depends on it alone.


@pytest.mark.parametrize("depth", [MAX_DEPTH + 1, 150, 10_000])
def test_what_is_nested_too_deeply_is_cut_off(depth):
    value = []
    for _ in range(depth):
        value = [value]

    kept, changed = sanitised(value)

    assert changed
    assert TOO_DEEP in json.dumps(kept)
    assert encode(replied({"value": sanitised({"v": value})[0]["v"]})).draft.payload


@pytest.mark.parametrize(("depth", "refused"), [(MAX_DEPTH - 1, False), (MAX_DEPTH, True)])
def test_a_fact_that_is_nested_too_deeply_is_refused(depth, refused):
    value = 1
    for _ in range(depth):
        value = [value]
    nested = replied({"value": value})

    with pytest.raises(SecretLeakError) if refused else nullcontext():
        encode(nested)

    assert refused is (sanitize_record(nested, REDACTOR) is not nested)


def test_ordinary_values_are_handed_back_as_they_are():
    value = {"a": [1, -(2**63), 1.5, None, True, "é", {"": []}]}

    assert sanitize(value, REDACTOR)[0] is value


@given(st.recursive(st.none() | st.floats() | st.integers() | st.text(), st.lists))
def test_cleaning_again_changes_nothing(value):
    kept, _ = sanitised(value)

    assert (kept, False) == sanitised(kept)
    assert json.loads(json.dumps(kept, allow_nan=False)) == kept


@pytest.mark.parametrize("seconds", [math.nan, math.inf])
def test_a_duration_that_is_no_number_is_refused(seconds):
    with pytest.raises(SecretLeakError):
        encode(ToolReturned(effect="1.0", attempt=1, output="", seconds=seconds))


def test_a_number_that_has_to_stay_one_is_bounded():
    fact = ToolReturned(effect="1.0", attempt=2**70, output="", seconds=math.nan)

    kept, changed = sanitize(fact, REDACTOR)

    assert (True, 2**63 - 1, 0.0) == (changed, kept.attempt, kept.seconds)


@dataclass(frozen=True, slots=True)
class Reply:
    """What a provider hands over."""

    text: str
    calls: tuple[ToolCall, ...]
    usage: Usage


def test_what_is_not_a_fact_yet_is_cleaned_alike():
    reply = Reply(CANARY, (ToolCall(id="1", name="x", arguments={"a": CANARY}),), Usage(input=3))

    kept, changed = sanitize(reply, REDACTOR)

    assert (True, REDACTED) == (changed, kept.text)
    assert ({"a": REDACTED}, reply.usage) == (kept.calls[0].arguments, kept.usage)
