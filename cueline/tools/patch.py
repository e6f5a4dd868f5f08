"""Reads unified diffs, as `git diff` and `diff -u` write them, and applies them to bytes.

An invalid patch, and a hunk that fits nowhere, raise `ValueError`; the message says where.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from io import BytesIO
from typing import NamedTuple

from cueline.events.sanitize import cut

NO_FILE = "/dev/null"
_HUNK = re.compile(rb"@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@")
_UNKNOWN = re.compile(
    rb"GIT binary patch|Binary files .* differ|(rename|copy) from |old mode |"
    rb"new file mode 1[26]0000"
)
_ESCAPE = re.compile(rb"\\([0-7]{3}|.)", re.DOTALL)
_ESCAPED = {b"n": b"\n", b"t": b"\t", b"r": b"\r", b"a": b"\a", b"b": b"\b", b"f": b"\f"}
_EPOCH = re.compile(rb"\t(1970-01-01|1969-12-31) ")
"""The time that `diff -N` writes for a file that is not there."""
_COMPARISONS = 5_000_000
"""The most lines to compare in the search for the nearest place of a hunk."""


class Hunk(NamedTuple):
    """One hunk: the lines that it replaces, with their ends, and the lines that it puts there."""

    head: str
    old_start: int
    new_start: int
    old: Sequence[bytes]
    new: Sequence[bytes]
    at_end: bool
    """Whether the hunk ends without context, so that it fits at the end of a file only."""


@dataclass(slots=True)
class FilePatch:
    """The change of one file, in the order of the patch."""

    names: tuple[str, str]
    """The new and the old name, as the patch has them."""
    creates: bool = False
    deletes: bool = False
    executable: bool = False
    hunks: list[Hunk] = field(default_factory=list)

    def paths(self) -> list[str]:
        """Return what the names may mean: without their first folder, such as `b/`, or whole."""
        found = []
        for name in self.names:
            if name != NO_FILE:
                found += [*name.split("/", 1)[1:], name]
        return found


def parse(patch: str) -> list[FilePatch]:
    """Return the changes in *patch*; text around them is ignored."""
    lines = [line + b"\n" for line in patch.encode(errors="surrogateescape").split(b"\n")]
    if lines[-1] == b"\n":
        lines.pop()
    files: list[FilePatch] = []
    has_names = False
    at = 0
    while at < len(lines):
        line, below = lines[at], lines[at + 1 : at + 2]
        _check_readable(line, at, after_hunk=bool(files and files[-1].hunks))
        if found := _HUNK.match(line):
            if not has_names:
                raise ValueError(f"line {at + 1}: a hunk without the lines `---` and `+++` above")
            hunk, at = _hunk(found, lines, at, len(files[-1].hunks) + 1)
            files[-1].hunks.append(hunk)
            continue
        if line.startswith(b"diff --git "):
            files.append(FilePatch(_git_names(line[11:-1])))
            has_names = False
        elif line.startswith(b"--- ") and below and below[0].startswith(b"+++ "):
            if has_names or not files:
                files.append(FilePatch(("", "")))
            _read_names(files[-1], line, below[0])
            has_names = True
            at += 1
        elif files and not has_names:
            files[-1].creates |= line.startswith(b"new file mode")
            files[-1].deletes |= line.startswith(b"deleted file mode")
            files[-1].executable |= line == b"new file mode 100755\n"
        at += 1
    changed = [each for each in files if each.hunks or each.creates or each.deletes]
    if not changed:
        raise ValueError("there is no change in it: a patch has lines `---`, `+++` and `@@`")
    return changed


def _check_readable(line: bytes, at: int, *, after_hunk: bool) -> None:
    """Raise if the *line* between two hunks has a change that would be lost."""
    if unknown := _UNKNOWN.match(line):
        what = unknown[0].decode(errors="replace").strip()
        why = "only texts are patched, no renames (--no-renames), modes, links or binary files"
        raise ValueError(f"line {at + 1} ({what}): {why}")
    signs = (b"+", b"-", b" ")
    if after_hunk and line[:1] in signs and line[:4] != b"--- " and line[:3] != b"-- ":
        raise ValueError(f"line {at + 1}: the hunk above has more lines than its `@@` says")


def _read_names(file: FilePatch, old: bytes, new: bytes) -> None:
    """Read the lines `---` and `+++`."""
    file.names = (_unquoted(new[4:-1]), _unquoted(old[4:-1]))
    file.creates |= file.names[1] == NO_FILE or _EPOCH.search(old) is not None
    file.deletes |= file.names[0] == NO_FILE or _EPOCH.search(new) is not None


def _git_names(text: bytes) -> tuple[str, str]:
    """Return the names in a line `diff --git`, which are alike; they count for empty files."""
    middle = len(text) // 2
    return _unquoted(text[middle + 1 :]), _unquoted(text[:middle])


def _unquoted(name: bytes) -> str:
    """Return *name* without a time behind it, and without the quotes and escapes of git."""
    name = name.split(b"\t")[0].rstrip(b"\r")
    if len(name) > 1 and name[:1] == name[-1:] == b'"':
        name = _ESCAPE.sub(_character, name[1:-1])
    return name.decode(errors="surrogateescape")


def _character(found: re.Match[bytes]) -> bytes:
    said = found[1]
    return bytes([int(said, 8) & 255]) if len(said) > 1 else _ESCAPED.get(said, said)


def _hunk(found: re.Match[bytes], lines: Sequence[bytes], at: int, number: int) -> tuple[Hunk, int]:
    """Return the hunk at the line *at*, and the next line."""
    head = found[0].decode()
    left, right = (1 if size is None else int(size) for size in (found[2], found[4]))
    old: list[bytes] = []
    new: list[bytes] = []
    sign = b" "
    while len(old) < left or len(new) < right:
        at += 1
        line = lines[at] if at < len(lines) else b""
        if line[:1] == b"\\":
            _without_end(old, new, sign)
            continue
        # Some programs cut the space of an empty line.
        sign, text = (b" ", line) if line in (b"\n", b"\r\n") else (line[:1], line[1:])
        old += [] if sign == b"+" else [text]
        new += [] if sign == b"-" else [text]
        if not sign or sign not in b" -+" or len(old) > left or len(new) > right:
            raise ValueError(f"line {at + 1}: hunk {number} ({head}) has other lines than it says")
    if lines[at + 1 : at + 2] and lines[at + 1][:1] == b"\\":
        _without_end(old, new, sign)
        at += 1
    return Hunk(head, int(found[1]), int(found[3]), old, new, sign != b" "), at + 1


def _without_end(old: list[bytes], new: list[bytes], sign: bytes) -> None:
    """Remove the end of the last line, which the file does not have."""
    for lines, other in ((old, b"+"), (new, b"-")):
        if lines and sign != other:
            lines[-1] = lines[-1].removesuffix(b"\n")


def apply(file: FilePatch, content: bytes) -> bytes:
    """Return *content* with the change of *file*; each hunk may be moved, but fits exactly."""
    lines = BytesIO(content).readlines()
    free = [True] * len(lines)
    for number, hunk in enumerate(file.hunks, 1):
        at = _place(hunk, lines, free)
        if at is None:
            where = f"hunk {number} of {len(file.hunks)} ({hunk.head})"
            raise ValueError(f"{where} does not fit{_nearest(hunk, lines)}")
        lines[at : at + len(hunk.old)] = hunk.new
        free[at : at + len(hunk.old)] = [False] * len(hunk.new)
    return b"".join(lines)


def _place(hunk: Hunk, lines: Sequence[bytes], free: Sequence[bool]) -> int | None:
    """Return where *hunk* fits, as near as possible to the place that it names; None: nowhere.

    As for `git apply`, a hunk that names the first line fits there only, a hunk without context
    at its end fits at the end only, and no hunk fits on the lines of another.
    """
    size, old, expected = len(hunk.old), list(hunk.old), max(hunk.new_start - 1, 0)
    last = len(lines) - size
    places = range(min(last, 0) + 1) if hunk.old_start <= 1 else range(last + 1)
    if hunk.at_end:
        places = places[-1:] if places[-1:] == range(last, last + 1) else range(0)

    def fits(at: int) -> bool:
        return lines[at : at + size] == old and all(free[at : at + size])

    if expected in places and fits(expected):
        return expected
    by_distance = sorted(places, key=lambda each: (abs(each - expected), each < expected))
    return next(filter(fits, by_distance), None)


def _nearest(hunk: Hunk, lines: Sequence[bytes]) -> str:
    """Return which lines are most like the old lines of *hunk*, and the first that differs."""
    wanted = [line.split() for line in hunk.old]
    there = [line.split() for line in lines]
    places = range(max(len(there) - len(wanted), 0) + 1)
    if not wanted or not there or len(places) * len(wanted) > _COMPARISONS:
        return f"; the file has {len(there):,} lines" if there else "; the file is empty"

    def alike(at: int) -> int:
        return sum(map(list.__eq__, there[at:], wanted))

    at = max(places, key=lambda each: (alike(each), -abs(each - hunk.old_start + 1)))
    pairs = enumerate(zip(lines[at:], hunk.old, strict=False), at + 1)
    number, has, says = next(
        ((number, *pair) for number, pair in pairs if pair[0] != pair[1]), (0, b"", b"")
    )
    if not number:
        return f"; its lines are at line {at + 1}, where it may not be, or where the file goes on"
    has_text, says_text = (text.decode(errors="replace") for text in (has, says))
    if alike(at) == 0:
        return "; no line of the file is like one of its lines; read the file again"
    return (
        f"; nearest are the lines from {at + 1}, but line {number} is {cut(has_text, 200)!r}, "
        f"and the patch has {cut(says_text, 200)!r}"
    )
