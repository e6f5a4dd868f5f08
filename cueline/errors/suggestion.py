"""Suggests the known words that are spelled most like an unknown word."""

from collections.abc import Iterable
from difflib import get_close_matches


def closest(
    word: str, candidates: Iterable[str], *, most: int = 1, cutoff: float = 0.6
) -> list[str]:
    """Return at most *most* of *candidates* that are spelled like *word*, closest first.

    Case does not count. *cutoff* is the required similarity, from 0 to 1.
    """
    by_spelling = {each.casefold(): each for each in candidates}
    near = get_close_matches(word.casefold(), by_spelling, n=most, cutoff=cutoff)
    return [by_spelling[each] for each in near]


def known_instead(
    word: str, candidates: Iterable[str], known: str = "known are", *, meant: str | None = None
) -> str:
    """Return the end of an error about the unknown *word*: a suggestion and the known words.

    *known* introduces the list of known words. *meant* replaces the suggestion by spelling.
    """
    words = list(candidates)
    guess = meant or next(iter(closest(word, words)), None)
    listed = f"{known} {', '.join(words) or 'none'}"
    return f": did you mean {guess!r}? {listed[0].upper()}{listed[1:]}" if guess else f"; {listed}"
