"""What a terminal shows of words and numbers."""

import json
import time
from datetime import UTC, datetime
from decimal import Decimal

import pytest

from cueline.cli.option import moment
from cueline.console.text import (
    arguments,
    capped,
    date_time,
    duration,
    json_of,
    money,
    one_line,
    visible,
    wrapped,
)

NIGHT = datetime(2026, 7, 1, 22, 30, tzinfo=UTC)


@pytest.mark.parametrize(
    ("said", "shown"),
    [
        ("plain\nlines", "plain\nlines"),
        ("\x1b]0;title\x07", "\\x1b]0;title\\x07"),
        ("over\rwritten", "over\\x0dwritten"),
        ("safe\u202eexe.txt", "safe\\x202eexe.txt"),
        ("a\u200bb", "a\\x200bb"),
        ("list.txt\U000e0041", "list.txt\\xe0041"),
        ("so\u00adft \u3164", "so\\xadft \\x3164"),
        ("👨\u200d👩\u200d👧", "👨\u200d👩\u200d👧"),
        ("windows\r\n", "windows\n"),
        ("Grüße, 你好", "Grüße, 你好"),
    ],
)
def test_what_a_terminal_would_obey_or_hide_is_spelt_out(said, shown):
    assert shown == visible(said)


def test_a_text_is_cut_to_one_line():
    assert "a b…" == one_line("a\n  b c", 4)


def test_a_long_text_says_how_much_more_there_is():
    assert ["1", "2", "… 2 more lines"] == capped("1\n2\n3\n4\n", 2, 80)
    assert ["1", "2"] == capped("1\n2\n", 2, 80)
    assert ["1", "… 1 more line"] == capped("1\n2", 1, 80)
    assert ["ab… 3 more characters", "ab"] == capped("abcde\nab", 2, 2)


def test_json_means_the_same_and_holds_nothing_that_a_terminal_would_obey():
    said = ["\x9b2J\x7f\x1b", "\u202e", "\U000e0041", "你好", "\\u202e"]

    told = json_of(said, indent=2)

    assert said == json.loads(told)
    assert "你好" in told
    assert told == visible(told)


def test_arguments_are_told_on_one_line():
    assert 'path="a b" deep=true' == arguments({"path": "a b", "deep": True}, 80)


@pytest.mark.parametrize(
    ("seconds", "told"),
    [
        (0.04, "0.0 s"),
        (9.96, "10.0 s"),
        (59.4, "59 s"),
        (61, "1m 01s"),
        (3_660, "1h 01m"),
        (90_000, "1d 1h"),
    ],
)
def test_a_span_of_time_is_told_in_its_largest_units(seconds, told):
    assert told == duration(seconds)


@pytest.mark.parametrize(
    ("usd", "told"),
    [
        ("0", "$0"),
        ("0.00000023", "$0.0000002"),
        ("0.00012", "$0.0001"),
        ("0.5", "$0.5000"),
        ("12.344", "$12.34"),
    ],
)
def test_a_cost_has_the_digits_it_needs(usd, told):
    assert told == money(Decimal(usd))


def test_a_long_line_is_wrapped_at_words():
    line = "  session one: completed · 3 turns · 250 in + 30 out tokens"

    assert ["  session one: completed · 3 turns ·", "  250 in + 30 out tokens"] == wrapped(line, 37)
    assert [line] == wrapped(line, 80)
    assert ["x" * 90] == wrapped("x" * 90, 80)


@pytest.mark.parametrize(
    ("zone", "read"),
    [
        ("UTC", "2026-07-01 22:30:00+00:00"),
        ("Asia/Kolkata", "2026-07-02 04:00:00+05:30"),
        ("America/New_York", "2026-07-01 18:30:00-04:00"),
    ],
)
def test_a_moment_is_told_where_the_reader_is_and_with_its_offset(monkeypatch, zone, read):
    monkeypatch.setenv("TZ", zone)
    time.tzset()

    told = date_time(NIGHT)

    monkeypatch.undo()
    time.tzset()
    assert read == told
    assert moment("--since", told) == NIGHT
