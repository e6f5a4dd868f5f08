"""A text that comes in pieces shows no secret, however it is split."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import SecretStr

from cueline.events.sanitize import CUT, Redactor
from cueline.events.stream_redactor import LONGEST_HELD, StreamRedactor

SECRET = "sk-ant-7f3a9c"
PADDED = "rn-key-0042"
"""Begins with letters that are skipped when a form is looked for."""


def redactor(*secrets):
    return Redactor([SecretStr(secret) for secret in secrets])


def shown(of, pieces):
    stream = StreamRedactor(of)
    return [*(stream.feed(piece) for piece in pieces), stream.end()]


def test_a_text_without_secrets_passes_at_once():
    assert ["Good ", "evening.", ""] == shown(redactor(SECRET), ["Good ", "evening."])


def test_without_any_secret_everything_passes_at_once():
    assert ["sk-", "ant", ""] == shown(redactor(), ["sk-", "ant"])


# I11
@pytest.mark.parametrize("secret", [SECRET, PADDED])
@pytest.mark.parametrize("at", range(1, 11))
def test_a_secret_that_is_split_over_two_pieces_does_not_pass(secret, at):
    text = f"The key is {secret}, he said."
    border = text.index(secret) + at

    parts = shown(redactor(secret), [text[:border], text[border:]])

    assert "The key is [redacted], he said." == "".join(parts)
    assert secret[:3] not in parts[0]


def test_a_secret_that_comes_letter_by_letter_does_not_pass():
    parts = shown(redactor(SECRET), f"It is {SECRET}!")

    assert "It is [redacted]!" == "".join(parts)


def test_what_only_begins_like_a_secret_passes_when_that_is_known():
    parts = shown(redactor(SECRET), ["A sk-a", "n", " ox"])

    assert ["A ", "", "sk-an ox", ""] == parts


def test_the_end_of_a_text_passes_when_it_is_whole():
    assert ["It is ", "sk-ant"] == shown(redactor(SECRET), ["It is sk-ant"])


def test_a_secret_inside_a_longer_one_is_no_reason_to_show_the_rest_of_that():
    longer = f"{SECRET}-and-more"

    parts = shown(redactor(SECRET, longer), [f"It is {SECRET}", "-and", "-more."])

    assert "It is [redacted]." == "".join(parts)


def test_a_secret_is_not_cut_where_another_may_begin():
    other = "9c-0000-1111"

    parts = shown(redactor(SECRET, other), [f"It is {SECRET}", "."])

    assert "It is [redacted]." == "".join(parts)


def test_nothing_is_shown_of_a_text_with_a_cut_mark():
    assert ["A", "", "", ""] == shown(redactor(SECRET), ["A", f"{SECRET[:5]}{CUT}", "B"])


def test_a_text_of_which_too_much_is_held_back_is_dropped():
    stream = StreamRedactor(redactor(PADDED))

    parts = [
        stream.feed("r" * LONGEST_HELD),
        stream.feed("r"),
        stream.feed(" The end."),
        stream.end(),
    ]

    assert ["", "", "", ""] == parts


LETTERS = "sk-ant7f39c n\n\\"


# I11
@given(
    text=st.lists(st.sampled_from([SECRET, PADDED, SECRET[:6], *LETTERS]), max_size=12).map(
        "".join
    ),
    borders=st.lists(st.integers(0, 80), max_size=6).map(sorted),
)
def test_a_split_text_is_shown_as_the_whole_would_be_recorded(text, borders):
    pieces = [text[a:b] for a, b in zip([0, *borders], [*borders, len(text)], strict=True)]
    of = redactor(SECRET, PADDED)

    told = "".join(shown(of, pieces))

    assert of.redact(text)[0] == told
