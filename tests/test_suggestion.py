"""Suggestions for a misspelt word."""

from cueline.errors.suggestion import closest, known_instead

KNOWN = ["read_file", "write_file", "Anthropic"]


def test_the_closest_word_is_suggested():
    assert ["read_file"] == closest("raed_file", KNOWN)


def test_case_does_not_count():
    assert ["Anthropic"] == closest("ANTROPIC", KNOWN)


def test_several_words_come_closest_first():
    assert ["write_file", "read_file"] == closest("wrte_file", KNOWN, most=2)


def test_a_word_like_no_other_gets_no_suggestion():
    assert [] == closest("teleport", KNOWN)


def test_a_message_names_the_suggestion_and_all_that_is_known():
    known = ": did you mean 'Anthropic'? Shipped are read_file, write_file, Anthropic"

    assert known == known_instead("antropic", KNOWN, "shipped are")


def test_a_message_without_a_suggestion_names_all_that_is_known():
    assert "; known are read_file, write_file, Anthropic" == known_instead("teleport", KNOWN)


def test_where_nothing_is_known_nothing_is_suggested():
    assert "; known are none" == known_instead("no", [])


def test_a_caller_that_knows_better_names_the_suggestion():
    known = known_instead("turns", KNOWN, meant="limits.max_turns")

    assert known.startswith(": did you mean 'limits.max_turns'? Known are")
