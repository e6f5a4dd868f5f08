"""Texts with NUL, which PostgreSQL's `text` cannot hold."""

_MARK = "\x01"


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
