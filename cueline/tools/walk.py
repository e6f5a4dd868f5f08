"""Walks a folder, without the entries that git would ignore."""

import codecs
import os
import re
import stat
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from pathspec.patterns.gitignore.spec import GitIgnoreSpecPattern

from cueline.errors import PathEscapeError, ToolFailedError
from cueline.files import LOG_FOLDER
from cueline.tools.folder import HardLinks, enter, open_file, open_folder

DEPTH = 64
SKIPPED = {".git", LOG_FOLDER}
_RULES_LIMIT = 1_000_000
"""The most bytes that are read of a file of patterns."""
_FOLDERS_BELOW = re.compile(r"(/\*\*)+/\s*$")
"""The end of a pattern of folders at any depth; the library takes the folder above for one."""
_MARK = codecs.BOM_UTF8.decode("latin-1")


@dataclass(frozen=True, slots=True)
class FolderEntry:
    """An entry of a folder, valid while the folder is open."""

    path: str
    parent: int
    name: str
    kind: int
    """The type bits of the entry's mode; links are not followed."""
    size: int


@dataclass(frozen=True, slots=True)
class _Patterns:
    """The patterns of one file, which hold below the folder *prefix*."""

    prefix: str
    matchers: Sequence[tuple[Callable[[str], bool], bool]]
    """Whether a pattern matches, and whether a match ignores; the last pattern first."""

    def answer(self, path: str) -> bool | None:
        """Whether *path* is ignored; None if no pattern matches. A folder's path ends in `/`."""
        # Byte by byte, as git compares: its `?` is a byte.
        name = os.fsencode(path[len(self.prefix) :]).decode("latin-1")
        return next((ignores for matches, ignores in self.matchers if matches(name)), None)


@dataclass(slots=True)
class IgnoreRules:
    """What the `.gitignore` files and `.git/info/exclude` of a workspace ignore.

    As in git, the patterns of the nearest folder decide first, and a repository in another one
    has only its own patterns. Unlike git, a file that is ignored and tracked is ignored.
    """

    links: HardLinks
    left_out: int = 0
    """The number of ignored entries; the entries of an ignored folder are not counted."""
    _patterns: list[_Patterns] = field(default_factory=list)

    def at(self, root: Path, names: Sequence[str]) -> None:
        """Read the patterns of the folders above the folder *names* of *root*."""
        for depth in range(len(names)):
            with open_folder(root, [*names[:depth]], "/".join(names)) as folder:
                self.read(folder, "".join(f"{name}/" for name in names[:depth]))

    def read(self, folder: int, prefix: str) -> list[_Patterns]:
        """Read the patterns of *folder*; return those that held before, for `restore`."""
        before = self._patterns
        if (excluded := self._file(folder, prefix, ".git", "info", "exclude")) is not None:
            self._patterns = [excluded]
        elif _is_repository(folder):
            self._patterns = []
        if (own := self._file(folder, prefix, ".gitignore")) is not None:
            self._patterns = [*self._patterns, own]
        return before

    def restore(self, patterns: list[_Patterns]) -> None:
        """Let *patterns* hold again, after the entries of a folder."""
        self._patterns = patterns

    def ignore(self, entry: FolderEntry) -> bool:
        """Whether *entry* is ignored; then it is counted. A folder that is not entered is not."""
        path = f"{entry.path}/" if entry.kind == stat.S_IFDIR else entry.path
        answers = (patterns.answer(path) for patterns in reversed(self._patterns))
        ignored = next((answer for answer in answers if answer is not None), False)
        ignored = ignored and entry.name.casefold() not in SKIPPED
        self.left_out += ignored
        return ignored

    def _file(self, folder: int, prefix: str, *names: str) -> _Patterns | None:
        """Return the patterns of a file in *folder*; None if it cannot be read."""
        opened = folder
        try:
            for name in names[:-1]:
                inner = enter(opened, name, name)
                if opened != folder:
                    os.close(opened)
                opened = inner
            with os.fdopen(open_file(opened, names[-1], names[-1], self.links), "rb") as file:
                text = file.read(_RULES_LIMIT).decode("latin-1")
        except (PathEscapeError, ToolFailedError):
            return None
        finally:
            if opened != folder:
                os.close(opened)
        lines = [line.removesuffix("\r") for line in text.removeprefix(_MARK).split("\n")]
        return _Patterns(prefix, [found for line in reversed(lines) if (found := _matcher(line))])


def _is_repository(folder: int) -> bool:
    with suppress(OSError):
        os.stat(".git", dir_fd=folder, follow_symlinks=False)
        return True
    return False


def _matcher(line: str) -> tuple[Callable[[str], bool], bool] | None:
    """Return the pattern of *line*; None for a comment, an empty or an invalid line."""
    if not line.rstrip().strip("!/"):
        return None  # no pattern for git
    try:
        pattern = GitIgnoreSpecPattern(_FOLDERS_BELOW.sub("/*/", line))
    except ValueError:
        return None
    if (regex := pattern.regex) is None or pattern.include is None:
        return None
    contents, folder = regex.pattern.endswith("/"), regex.groupindex
    if regex.pattern.startswith("(?P<ps_d>"):  # `*/`, for any folder
        return (lambda name: name.endswith("/")), pattern.include

    def matches(name: str) -> bool:
        # The expression also matches what is below a matching folder; git asks at each folder.
        found = regex.search(name)
        if found is None:
            return False
        if folder and found["ps_d"]:
            return found.end() == len(name)
        return not contents or found.end() < len(name)

    return matches, pattern.include


def walk(
    folder: int, prefix: str = "", *, depth: int = DEPTH, rules: IgnoreRules | None = None
) -> Iterator[FolderEntry]:
    """Yield the entries of *folder*, in order, down to *depth* folders below it.

    Entries that *rules* ignore are left out, and counted there.
    """
    with os.scandir(folder) as entries:
        found = sorted(entries, key=lambda entry: entry.name)
    before = [] if rules is None else rules.read(folder, prefix)
    for each in found:
        with suppress(OSError):  # the entry is gone, or only its name may be read
            status = each.stat(follow_symlinks=False)
            kind = stat.S_IFMT(status.st_mode)
            entry = FolderEntry(f"{prefix}{each.name}", folder, each.name, kind, status.st_size)
            if rules is not None and rules.ignore(entry):
                continue
            yield entry
            if kind == stat.S_IFDIR and depth > 0 and each.name.casefold() not in SKIPPED:
                yield from below(folder, each.name, entry.path, depth=depth - 1, rules=rules)
    if rules is not None:
        rules.restore(before)


def below(
    parent: int, name: str, path: str, *, depth: int, rules: IgnoreRules | None
) -> Iterator[FolderEntry]:
    """Yield the entries of the folder *name*; a folder without access has no entries."""
    try:
        inner = enter(parent, name, path)
    except (PathEscapeError, ToolFailedError):
        return
    try:
        yield from walk(inner, f"{path}/", depth=depth, rules=rules)
    finally:
        os.close(inner)
