"""Compares the patterns of policy rules with names, paths and commands."""

import posixpath
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import lru_cache

from cueline.deciders.shell_command import SimpleCommand, simple_commands
from cueline.events.agent import ToolSpec
from cueline.events.message import Arguments
from cueline.linear_regex import compile_regex

_WILD = {"**/": "(?:.*/)?", "/**": "(?:/.*)?", "**": ".*", "*": "[^/]*", "?": "[^/]"}
_PIECES = re.compile(r"\\.|\*\*/|/\*\*$|\*\*|\*|\?|[^*?/\\]+|/|\\$", re.DOTALL)
_FIRST_WILD = re.compile(r"[*?]")
_SPECIAL = re.compile(r"[*?\\]")


def matches_any(name: str, patterns: Iterable[str]) -> bool:
    """Whether *name* matches one of *patterns*; `*` matches any text, `?` any character."""
    return _any_text(tuple(patterns))(name)


def path_matches(path: str, globs: Iterable[str], place: str) -> bool:
    """Whether *path* matches one of *globs*; `**` crosses folders, `*` does not.

    Paths are normalized, without `.` and `..`. A path below *place* counts as relative to
    *place*, also in a glob that begins with *place*. Links are not resolved.
    """
    plain = _plain(place)
    return any(_in_folders(glob, plain)(name) for name in _names(path, plain) for glob in globs)


def _names(path: str, place: str) -> Iterator[str]:
    """Yield the names of *path* for globs: one name if it is below *place*, else up to two."""
    whole = _plain(posixpath.join(place, path))
    if (inner := _inside(whole, place)) is not None:
        yield inner
        return
    yield whole
    if (plain := _plain(path)) != whole:
        yield plain


def _inside(whole: str, place: str) -> str | None:
    """Return the path *whole* relative to *place*; None for a path outside *place*."""
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
def _any_text(patterns: tuple[str, ...]) -> Callable[[str], bool]:
    pieces = (re.split(r"(\*+|\?)", pattern) for pattern in patterns)
    wild = {"?": ".", "*": ".*"}
    globs = ("".join(wild.get(each[:1]) or re.escape(each) for each in glob) for glob in pieces)
    return compile_regex(rf"(?s)\A(?:{'|'.join(globs)})\z")


@lru_cache(maxsize=1000)
def _in_folders(glob: str, place: str) -> Callable[[str], bool]:
    plain = _plain(glob)
    inner = _inside(plain, place) or _inside(plain, escape_glob(place))
    pieces = _PIECES.findall(inner or plain)
    if not _WILD.keys() & pieces:
        return "".join(map(_literal, pieces)).__eq__  # of any length
    meanings = (_WILD.get(piece) or re.escape(_literal(piece)) for piece in pieces)
    return compile_regex(rf"(?s)\A{''.join(meanings)}\z")


def _literal(piece: str) -> str:
    return piece[1:] if len(piece) > 1 and piece.startswith("\\") else piece


def escape_glob(path: str) -> str:
    """Return a glob that matches exactly *path*."""
    return _SPECIAL.sub(r"\\\g<0>", path)


def may_run(text: str, patterns: Iterable[str], *, unknown: bool = True) -> bool:
    """Whether the shell command *text* runs a command that matches one of *patterns*.

    If *unknown*, an unresolved command counts as a match.
    """
    for each in simple_commands(text):
        if each.is_known:
            matches = matches_any(each.text, patterns)
        else:
            matches = unknown and _may_match(each, patterns)
        if matches:
            return True
    return matches_any(" ".join(text.split()), patterns)


def runs_only(text: str, patterns: Iterable[str]) -> bool:
    """Whether each command in the shell command *text* is known, and matches *patterns*."""
    written = (each for each in simple_commands(text) if each.is_written)
    return all(each.is_known and matches_any(each.text, patterns) for each in written)


def _may_match(command: SimpleCommand, patterns: Iterable[str]) -> bool:
    """Whether a partly known command may match *patterns*, apart from the commands that it runs."""
    known, is_open = command.text, command.is_innermost
    starts = (_FIRST_WILD.split(pattern, maxsplit=1)[0] for pattern in patterns)
    return any(known.startswith(each) or (is_open and each.startswith(known)) for each in starts)


def paths_of(tool: ToolSpec, arguments: Arguments) -> Iterator[str]:
    """Return the paths in *arguments*; every text in them if *tool* declares no paths."""
    return texts_of(named_paths(tool, arguments) if tool.paths else arguments)


def named_paths(
    tool: ToolSpec, arguments: Arguments, names: Iterable[str] | None = None
) -> dict[str, object]:
    """Return the values of the arguments *names*, by default the declared paths, by name."""
    wanted = tool.paths if names is None else names
    return {name: arguments.get(name, _default(tool, name)) for name in wanted}


def _default(tool: ToolSpec, name: str) -> object:
    """Return the default of the tool's argument *name*; None without a default."""
    properties = tool.parameters.get("properties")
    told = properties.get(name) if isinstance(properties, Mapping) else None
    return told.get("default") if isinstance(told, Mapping) else None


def texts_of(value: object) -> Iterator[str]:
    """Yield the texts in *value*, at any depth."""
    match value:
        case str():
            yield value
        case Mapping():
            for item in value.values():
                yield from texts_of(item)
        case list() | tuple():
            for item in value:
                yield from texts_of(item)
