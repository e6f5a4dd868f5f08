"""How much of a result a model is sent."""

import json

import pytest

from cueline.deciders.compaction import UNKNOWN, fitted, limit_of
from cueline.events.message import ImageBlock, ToolMessage, UserMessage, canonical_json, tool_json

WORDS = canonical_json(UserMessage(text="x" * 100_000))


def result(text, **more):
    return tool_json("a", text, failed=False, **more)


def sent(text, window):
    (message,) = fitted([result(text)], window)
    return json.loads(message)["text"]


@pytest.mark.parametrize(
    ("window", "most"), [(None, UNKNOWN), (8_000, 6_000), (200_000, 150_000), (1_000_000, 750_000)]
)
def test_a_result_takes_a_quarter_of_the_window(window, most):
    assert most == limit_of(window)


@pytest.mark.parametrize("window", [None, 8_000, 200_000])
def test_a_longer_one_keeps_its_begin_and_its_end(window):
    most = limit_of(window)
    text = f"first{'-' * most}last"

    told = sent(text, window)

    begin, gap, end = told.split("\n")
    assert (text[: len(begin)], text[-len(end) :]) == (begin, end)
    assert (most, most // 6) == (len(begin) + len(end), len(end))
    assert "[… 9 bytes are left out here, for which this model has no room …]" == gap


def test_a_character_is_not_split():
    assert "\ufffd" not in sent("é€😀" * 10_000, 8_000)


def test_what_fits_is_the_same_object():
    messages = [result("short"), canonical_json(UserMessage(text="hi"))]

    assert messages is fitted(messages, 8_000)


# Its JSON is longer than its text.
def test_a_text_that_fits_stays_as_it_is():
    text = "\n" * 5_999

    assert text == sent(text, 8_000)


def test_words_of_people_and_images_are_not_cut():
    image = ImageBlock(media_type="image/png", data="A" * 100_000)
    messages = [WORDS, result("an image", attachments=(image,)), result("y" * 100_000)]

    first, second, third = fitted(messages, 8_000)

    assert (WORDS, messages[1]) == (first, second)
    assert len(third) < 7_000


def test_it_stays_a_result_of_its_call():
    said = ToolMessage.model_validate_json(fitted([result("y" * 100_000)], 8_000)[0])

    assert ("a", False) == (said.call, said.failed)
