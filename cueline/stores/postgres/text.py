"""Statements and texts as PostgreSQL takes them; its `text` cannot hold NUL."""

from collections.abc import Iterable, Sequence
from typing import Any

_MARK = "\x01"


def marked(statement: str) -> bytes:
    """Return *statement*, which has question marks for values, with psycopg's marks."""
    return statement.replace("?", "%s").encode()


def escaped(text: str) -> str:
    """Return *text* without NUL; `unescaped` returns it as it was."""
    if "\0" not in text and _MARK not in text:
        return text
    return text.replace(_MARK, "\x01a").replace("\0", "\x01b")


def unescaped(text: str) -> str:
    """Return what `escaped` was given."""
    if _MARK not in text:
        return text
    return text.replace("\x01b", "\0").replace("\x01a", _MARK)


def escaped_values(values: Iterable[object]) -> list[object]:
    """Return *values* with their texts escaped."""
    return [escaped(value) if isinstance(value, str) else value for value in values]


def unescaped_row(row: Sequence[Any]) -> tuple[Any, ...]:
    """Return a row whose texts were escaped as it was."""
    return tuple(unescaped(value) if isinstance(value, str) else value for value in row)
