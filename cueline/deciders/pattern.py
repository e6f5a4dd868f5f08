"""Patterns of policy rules for names, paths and commands."""

import posixpath
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import lru_cache

from cueline.linear_regex import compile_regex

_BETWEEN_COMMANDS = re.compile(r"&&|\|\||[;|&\n`(){}]|\$\(")
_ANY_TEXT = {"**/": ".*/", "/**": "/.*", "**": ".*", "*": ".*", "?": "."}
_IN_FOLDERS = {"**/": "(?:.*/)?", "/**": "(?:/.*)?", "**": ".*", "*": "[^/]*", "?": "[^/]"}
_PIECES = re.compile(r"\\.|\*\*/|/\*\*$|\*\*|\*|\?|[^*?/\\]+|/|\\$", re.DOTALL)
_SPECIAL = re.compile(r"[*?\\]")


def matches_any(name: str, patterns: Iterable[str]) -> bool:
    """Whether *name* matches one of *patterns*; `*` matches any text, `?` any character."""
    return any(_any_text(pattern)(name) for pattern in patterns)


def path_matches(path: str, globs: Iterable[str], place: str) -> bool:
    """Whether *path* matches one of *globs*; `**` crosses folders, `*` does not.

    Paths are normalized, without `.` and `..`. A path below *place* is relative to
    it, and so is a glob that begins with *place*. Links are not resolved.
    """
    plain = _plain(place)
    return any(_in_folders(glob, plain)(name) for name in _names(path, plain) for glob in globs)


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
def _any_text(glob: str) -> Callable[[str], bool]:
    return _compiled(glob.replace("\\", "\\\\"), _ANY_TEXT)  # as in the login CORP\\ada


@lru_cache(maxsize=1000)
def _in_folders(glob: str, place: str) -> Callable[[str], bool]:
    plain = _plain(glob)
    inner = _inside(plain, place) or _inside(plain, escape_glob(place))
    return _compiled(inner or plain, _IN_FOLDERS)


def _compiled(glob: str, wild: Mapping[str, str]) -> Callable[[str], bool]:
    """Return a function that says whether a whole text matches *glob*, in linear time."""
    pieces = _PIECES.findall(glob)
    if not wild.keys() & pieces:
        return "".join(map(_literal, pieces)).__eq__  # of any length
    meanings = (wild.get(piece) or re.escape(_literal(piece)) for piece in pieces)
    return compile_regex(rf"(?s)\A{''.join(meanings)}\z")


def _literal(piece: str) -> str:
    return piece[1:] if len(piece) > 1 and piece.startswith("\\") else piece


def escape_glob(path: str) -> str:
    """Return a glob that matches exactly this path."""
    return _SPECIAL.sub(r"\\\g<0>", path)


def command_matches(text: str, patterns: Iterable[str]) -> bool:
    """Whether *text*, or a command in it, matches one of *patterns*.

    It catches mistakes, not attacks: a shell can spell a command in many ways.
    """
    commands = [text, *_BETWEEN_COMMANDS.split(text)]
    return any(matches_any(" ".join(command.split()), patterns) for command in commands)
