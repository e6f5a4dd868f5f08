"""Patterns of policy rules for names, paths and commands."""

import posixpath
import re
from collections.abc import Iterable, Iterator
from fnmatch import fnmatchcase
from functools import lru_cache

_BETWEEN_COMMANDS = re.compile(r"&&|\|\||[;|&\n`(){}]|\$\(")
_WILD = {"**/": "(?:.*/)?", "/**": "(?:/.*)?", "**": ".*", "*": "[^/]*", "?": "[^/]"}
_PIECES = re.compile(r"\\.|\*\*/|/\*\*$|\*\*|\*|\?|[^*?/\\]+|/|\\$")
_SPECIAL = re.compile(r"[*?\\]")


def matches_any(name: str, patterns: Iterable[str]) -> bool:
    """Whether *name* matches one of *patterns*; `*` matches any text."""
    return any(fnmatchcase(name, pattern) for pattern in patterns)


def path_matches(path: str, globs: Iterable[str], place: str) -> bool:
    """Whether *path* matches one of *globs*; `**` crosses folders, `*` does not.

    Paths are normalized, without `.` and `..`. A path below *place* is relative to
    it, and so is a glob that begins with *place*. Links are not resolved.
    """
    plain = _plain(place)
    return any(
        _compiled(glob, plain).fullmatch(name) for name in _names(path, plain) for glob in globs
    )


def _names(path: str, place: str) -> Iterator[str]:
    """Yield the names of *path* that a glob may match: one below *place*, up to two outside."""
    whole = _plain(posixpath.join(place, path))
    if (inner := _inside(whole, place)) is not None:
        yield inner
        return
    yield whole
    if (plain := _plain(path)) != whole:
        yield plain


def _inside(whole: str, place: str) -> str | None:
    """Return *whole* relative to *place*; None if it is not below that."""
    above = place.rstrip("/") + "/"
    if not posixpath.isabs(place) or not f"{whole}/".startswith(above):
        return None
    return whole.removeprefix(above) if whole != place else "."


def _plain(path: str) -> str:
    """Return *path* without `.`, `..` and a doubled first slash."""
    plain = posixpath.normpath(path)
    # POSIX leaves the meaning of two slashes open; where tools run, they are one.
    return plain[1:] if plain.startswith("//") else plain


@lru_cache(maxsize=1000)
def _compiled(glob: str, place: str) -> re.Pattern[str]:
    plain = _plain(glob)
    inner = _inside(plain, place) or _inside(plain, escape_glob(place))
    pieces = _PIECES.findall(inner or plain)
    return re.compile("".join(map(_meaning, pieces)), re.DOTALL)


def _meaning(piece: str) -> str:
    if len(piece) > 1 and piece.startswith("\\"):
        return re.escape(piece[1:])
    return _WILD.get(piece, re.escape(piece))


def escape_glob(path: str) -> str:
    """Return a glob that matches exactly this path."""
    return _SPECIAL.sub(r"\\\g<0>", path)


def command_matches(text: str, patterns: Iterable[str]) -> bool:
    """Whether *text*, or a command in it, matches one of *patterns*.

    It catches mistakes, not attacks: a shell can spell a command in many ways.
    """
    commands = [text, *_BETWEEN_COMMANDS.split(text)]
    return any(matches_any(" ".join(command.split()), patterns) for command in commands)
