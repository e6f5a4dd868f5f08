"""The full-text index `words`: which words the text of each event has.

A word has letters, digits and `-_./`, so an option and a path are one word each. The index has the
beginnings of texts, as the transcript has, and never the texts themselves.
"""

import re
from collections.abc import Iterable, Sequence
from typing import Any

from cueline.errors import ConfigError

CREATE = """
CREATE VIRTUAL TABLE words USING fts5 (
    text, content = '', contentless_delete = 1, detail = none,
    tokenize = "unicode61 remove_diacritics 0 tokenchars '-_./'"
)
"""
ADD = "INSERT INTO words (rowid, text) VALUES (?, ?)"
FORGET = "DELETE FROM words WHERE rowid IN (SELECT position FROM events WHERE session = ?)"
OVERWRITE = "INSERT INTO words (words) VALUES ('optimize')"
"""Removes what FTS5 still has of forgotten words."""
JOIN = "JOIN words ON words.rowid = events.position"
MATCH = "words MATCH ?"

_SAID = frozenset({"user", "assistant", "summary", "call", "result", "end"})
"""The kinds of lines of a transcript that a model, a tool or a person said."""
_LONGEST = 20_000
_WORD = re.compile(r"[\w./-]+")
_WIDEST = 198
"""A longer word is found by its beginning: PostgreSQL indexes 200 characters, `./` among them."""
_FORMS = ("{}", "{}.", "./{}", "/{}", "{}/")
"""How a word can be written: at the end of a sentence, or as a path."""


def text_of(fact: Any, lines: Iterable[Sequence[Any]], call: str) -> str:
    """Return the words of one event of a session.

    *lines* are its rows of the transcript, *call* the arguments of the call that it starts.
    """
    said = [f"{each[5]} {each[6]}" for each in lines if each[3] in _SAID]
    if fact.type == "ToolReturned":
        said += [each.path for each in fact.changes]
    if call:
        said.append(call)
    return "\n".join(said)[:_LONGEST].lower()


def text_of_decision(fact: Any) -> str:
    """Return the words of one event of an approval."""
    said = (getattr(fact, name, "") for name in ("tool", "summary", "digest", "by", "note"))
    return "\n".join(filter(None, said)).lower()


def query_of(text: str) -> str:
    """Return the query for events with all words of *text*; a word that ends in `*` is a beginning.

    Raises:
        ConfigError: *text* has no word.
    """
    asked: list[str] = []
    for each in text.lower().split():
        found = _WORD.findall(each)
        asked += map(_any_form, found[:-1] if each.endswith("*") else found)
        if found and each.endswith("*"):
            asked.append(_beginning(found[-1]))
    if not asked:
        raise ConfigError("text", f"{text!r} has no word to look for")
    return " AND ".join(asked)


def _any_form(word: str) -> str:
    bare = word.strip("./") or word
    if len(bare) > _WIDEST:
        return _beginning(bare)
    return "({})".format(" OR ".join(f'"{form.format(bare)}"' for form in _FORMS))


def _beginning(word: str) -> str:
    return f'"{word[:_WIDEST]}"*'
