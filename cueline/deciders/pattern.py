"""Patterns in rules: names, paths and commands that read like this."""

import posixpath
import re
from collections.abc import Iterable
from fnmatch import fnmatchcase
from functools import lru_cache

_BETWEEN_COMMANDS = re.compile(r"&&|\|\||[;|&\n`(){}]|\$\(")
_WILD = {"**/": "(?:.*/)?", "/**": "(?:/.*)?", "**": ".*", "*": "[^/]*", "?": "[^/]"}
_PIECES = re.compile(r"\\.|\*\*/|/\*\*$|\*\*|\*|\?|[^*?/\\]+|/|\\$")
_SPECIAL = re.compile(r"[*?\\]")


def fits_any(name: str, patterns: Iterable[str]) -> bool:
    """Whether *name* reads like one of *patterns*; `*` stands for anything."""
    return any(fnmatchcase(name, pattern) for pattern in patterns)


def lies_in(path: str, globs: Iterable[str], place: str = "") -> bool:
    """Whether *path* lies where one of *globs* says; `**` crosses folders, `*` does not.

    A path is held against it as the file system takes it, without `.` and
    `..`, and relative to *place* where it is below that. Links are not known here.
    """
    plain = posixpath.normpath(path)
    if place and (plain == place or plain.startswith(f"{place}/")):
        plain = posixpath.relpath(plain, place)
    return any(_compiled(glob).fullmatch(plain) for glob in globs)


@lru_cache(maxsize=1000)
def _compiled(glob: str) -> re.Pattern[str]:
    pieces = _PIECES.findall(posixpath.normpath(glob))
    return re.compile("".join(map(_meaning, pieces)), re.DOTALL)


def _meaning(piece: str) -> str:
    if len(piece) > 1 and piece.startswith("\\"):
        return re.escape(piece[1:])
    return _WILD.get(piece, re.escape(piece))


def literal(path: str) -> str:
    """Return the glob of exactly this path."""
    return _SPECIAL.sub(r"\\\g<0>", path)


def runs_any(text: str, patterns: Iterable[str]) -> bool:
    """Whether *text*, or a command in it, reads like one of *patterns*.

    It catches mistakes, not malice: a shell has a hundred ways to spell a command.
    """
    commands = [text, *_BETWEEN_COMMANDS.split(text)]
    return any(fits_any(" ".join(command.split()), patterns) for command in commands)
