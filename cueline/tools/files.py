"""The built-in file tools, which stay inside the workspace."""

import hashlib
import json
import os
import re
import secrets
import stat
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from difflib import unified_diff
from os import fdopen
from pathlib import Path
from typing import Annotated, BinaryIO

from pydantic import Field, JsonValue

from cueline.actors.presence import machine_name
from cueline.errors import CuelineError, PathEscapeError, ToolFailedError
from cueline.events.agent import ToolSpec, Workspace
from cueline.events.message import IMAGE_LIMIT, LONGEST_START, image_type
from cueline.events.sanitize import CUT, cut
from cueline.linear_regex import compile_regex
from cueline.tools.folder import (
    REACHES_LOG,
    FolderEntry,
    HardLinks,
    failure,
    folder_at,
    kind_of,
    names_in,
    open_file,
    parent_of,
    refusals,
    refuse_link,
    walk,
    within,
    word_for,
)
from cueline.tools.tool import Image, ToolContext, tool

READ_LIMIT = 200_000
LIST_LIMIT = 1_000
SEARCH_LIMIT = 10_000_000
LINE_LIMIT = 300
PEEK = 8192
_BREAKS = re.compile(r"[\x00-\x1f]")

Inside = Annotated[str, Field(description="Relative to the workspace.")]
AtLeastOne = Annotated[int, Field(ge=1)]


@tool(read_only=True, needs_workspace=True, paths=["path"])
def read_file(
    path: Inside, start_line: AtLeastOne = 1, max_lines: AtLeastOne = 2000, *, context: ToolContext
) -> str | Image:
    """Read a text file or an image (PNG, JPEG, GIF, WebP) of the workspace.

    At most 200,000 bytes are returned; a note at the end says where to go on.
    """
    links = HardLinks(context.workspace)
    with (
        parent_of(context.workspace, path) as (parent, name),
        os.fdopen(open_file(parent, name, path, links), "rb") as file,
    ):
        size = os.fstat(file.fileno()).st_size
        if is_image(file):
            if size > IMAGE_LIMIT:
                most = f"the largest that is read has {IMAGE_LIMIT:,}"
                raise failure(path, f"is an image of {size:,} bytes; {most}")
            return Image(file.read(IMAGE_LIMIT))
        if is_binary(file):
            raise failure(path, f"is binary, {size:,} bytes; only text and images are read")
        taken, note = take(file, start_line, max_lines)
    text = f"{CUT if start_line > 1 else ''}{b''.join(taken).decode(errors='replace')}"
    return f"{text}{CUT}\n[{note}; the file has {size:,} bytes]" if note else text


@tool(idempotent=True, needs_workspace=True, paths=["path"], writes=("path", "content"))
def write_file(path: Inside, content: str, *, context: ToolContext) -> str:
    """Write a text file of the workspace, and the folders above it.

    A file that is there is replaced as a whole: readers see the old or the new one.
    """
    data = content.encode()
    with parent_of(context.workspace, path, create=True) as (parent, name):
        replace(parent, name, path, data)
    return f"wrote {len(data):,} bytes to {path}"


@tool(read_only=True, needs_workspace=True, paths=["path"])
def list_files(path: Inside = ".", recursive: bool = False, *, context: ToolContext) -> str:  # noqa: FBT001, FBT002 - the model names it
    """List a folder of the workspace: folders end in `/`, files have their size in bytes.

    At most 1,000 entries are listed. `.git` and `.cueline` are not entered.
    """
    lines: list[str] = []
    with folder_at(context.workspace, path) as folder:
        prefix = "".join(f"{name}/" for name in names_in(path))
        for entry in walk(folder, prefix) if recursive else walk(folder, prefix, depth=0):
            if len(lines) == LIST_LIMIT:
                lines.append(f"[more than {LIST_LIMIT:,} entries; list a folder further down]")
                break
            lines.append(line_for(entry))
    return "\n".join(lines) or "[empty]"


@tool(read_only=True, needs_workspace=True, paths=["path"])
def search_files(  # noqa: D417 - the model is not told of the context
    pattern: str,
    path: Inside = ".",
    regex: bool = False,  # noqa: FBT001, FBT002 - the model names it
    max_matches: Annotated[int, Field(ge=1, le=1000)] = 200,
    *,
    context: ToolContext,
) -> str:
    """Search the text files of the workspace line by line: `path:line: text`.

    Binary files, files over 10 MB, `.git` and `.cueline` are left out, and said to be.

    Args:
        pattern: text to find as it is; with `regex`, a regular expression.
        path: the file or folder to search, relative to the workspace.
        regex: whether *pattern* is a regular expression; it may have no look-around and no
            backreferences.
        max_matches: the search ends after as many.
    """
    try:
        wanted = compile_regex(pattern) if regex else lambda line: pattern in line
    except ValueError as error:
        raise ToolFailedError(
            "tool_error", f"{pattern!r} is no regular expression: {error}"
        ) from None
    lines: list[str] = []
    skipped = 0
    links = HardLinks(context.workspace)
    for entry in entries_at(context, path):
        found = search(entry, wanted, max_matches - len(lines), links)
        skipped += found is None
        lines += found or []
        if len(lines) == max_matches:
            lines.append(f"[stopped at {max_matches} matches]")
            break
    left_out = [f"[left out {skipped} binary, huge or unreadable files]"] if skipped else []
    return "\n".join(lines + left_out) or "[no match]"


@tool(idempotent=True, sensitive=True, needs_workspace=True, paths=["path"])
def delete_file(path: Inside, *, context: ToolContext) -> str:
    """Delete one file of the workspace; a file that is not there is no error."""
    with parent_of(context.workspace, path) as (parent, name), refusals(parent, name, path):
        if kind_of(parent, name) == stat.S_IFDIR:
            raise failure(path, "is a folder; files are deleted one by one")
        try:
            os.unlink(name, dir_fd=parent)  # removes a link, never its target
        except FileNotFoundError:
            return f"{path} is not there"
        os.fsync(parent)
    return f"deleted {path}"


def is_image(file: BinaryIO) -> bool:
    """Whether *file* begins like an image of a type that models take."""
    start = file.read(LONGEST_START)
    file.seek(0)
    return bool(image_type(start))


def is_binary(file: BinaryIO) -> bool:
    """Whether *file* has a NUL byte near its start."""
    binary = b"\0" in file.read(PEEK)
    file.seek(0)
    return binary


def take(file: BinaryIO, start: int, count: int) -> tuple[list[bytes], str]:
    """Return *count* lines from line *start*, and a note if the file has more lines."""
    taken: list[bytes] = []
    room = READ_LIMIT
    number = 0
    for number, chunk in lines_of(file):
        if number < start:
            continue
        if number >= start + count:
            return taken, f"go on with start_line={number}"
        if len(chunk) > room and taken:
            return taken, f"go on with start_line={number}"
        if len(chunk) > room:
            return [chunk[:room]], f"line {number} is cut, go on with start_line={number + 1}"
        taken.append(chunk)
        room -= len(chunk)
    return taken, f"there are only {number} lines" if 1 < start > number else ""


def lines_of(file: BinaryIO) -> Iterator[tuple[int, bytes]]:
    """Yield the lines of *file* with their numbers; a very long line in pieces."""
    number = 1
    while chunk := file.readline(READ_LIMIT + 1):
        yield number, chunk
        number += chunk.endswith(b"\n")


def replace(parent: int, name: str, path: str, data: bytes) -> None:
    """Write *data* under *name* atomically, on disk before it is visible."""
    refuse_link(parent, name, path)
    kind = kind_of(parent, name)
    if kind not in {None, stat.S_IFREG}:
        raise failure(path, f"is a {word_for(kind or 0)}, not a file")
    temporary = f".{secrets.token_hex(8)}.tmp"
    with refusals(parent, name, path):
        try:
            write(parent, temporary, data, mode=mode_of(parent, name))
            os.rename(temporary, name, src_dir_fd=parent, dst_dir_fd=parent)
        except BaseException:
            with suppress(OSError):
                os.unlink(temporary, dir_fd=parent)
            raise
        os.fsync(parent)


def write(parent: int, name: str, data: bytes, *, mode: int | None) -> None:
    """Write a new file, synced to disk."""
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    with os.fdopen(os.open(name, flags, 0o666, dir_fd=parent), "wb") as file:
        if mode is not None:
            os.fchmod(file.fileno(), mode)
        file.write(data)
        file.flush()
        os.fsync(file.fileno())


def mode_of(parent: int, name: str) -> int | None:
    """Return the permissions of *name*, so that a script stays executable."""
    with suppress(FileNotFoundError):
        return stat.S_IMODE(os.stat(name, dir_fd=parent, follow_symlinks=False).st_mode)
    return None


def line_for(entry: FolderEntry) -> str:
    """Return the line for *entry* in the list of a folder."""
    name = on_one_line(entry.path)
    if entry.kind == stat.S_IFDIR:
        return f"{name}/"
    if entry.kind == stat.S_IFREG:
        return f"{name}  {entry.size:,}"
    return f"{name}  ({word_for(entry.kind)})"


def on_one_line(path: str) -> str:
    """Return *path*; as JSON if *path* contains control characters."""
    return json.dumps(path, ensure_ascii=False) if _BREAKS.search(path) else path


def entries_at(context: ToolContext, path: str) -> Iterator[FolderEntry]:
    """Yield the regular files at *path*, a folder or a file."""
    names = names_in(path)
    if names:
        with parent_of(context.workspace, path) as (parent, name):
            if kind_of(parent, name) == stat.S_IFREG:
                yield FolderEntry("/".join(names), parent, name, stat.S_IFREG, 0)
                return
    prefix = "".join(f"{name}/" for name in names)
    with folder_at(context.workspace, path) as folder:
        yield from (entry for entry in walk(folder, prefix) if entry.kind == stat.S_IFREG)


def search(
    entry: FolderEntry, wanted: Callable[[str], bool], most: int, links: HardLinks
) -> list[str] | None:
    """Return the matching lines of *entry*; None if the file is not searched."""
    try:
        descriptor = open_file(entry.parent, entry.name, entry.path, links)
    except (PathEscapeError, ToolFailedError):
        return None
    with os.fdopen(descriptor, "rb") as file:
        if os.fstat(descriptor).st_size > SEARCH_LIMIT or is_binary(file):
            return None
        lines: list[str] = []
        before = 0
        for number, chunk in lines_of(file):
            text = chunk.decode(errors="replace").rstrip("\r\n")
            if wanted(text):
                start = CUT if number == before else ""  # a part of a very long line
                lines.append(f"{on_one_line(entry.path)}:{number}: {start}{cut(text, LINE_LIMIT)}")
                if len(lines) == most:
                    break
            before = number
        return lines


LARGEST = 1_000_000
PAIRS = 5000**2
"""The most pairs of an old and a new line to compare, because a comparison blocks the host."""
LINES = 400
_FILE_TOOLS = "cueline.tools.files:"


def preview(
    log: str,
    files: Iterable[Path],
    tool: ToolSpec,
    arguments: Mapping[str, JsonValue],
    workspace: Workspace | None,
) -> str:
    """Return the diff of the change that a call would make to a file; empty if unknown.

    The diff needs a tool that declares `writes`, and a workspace on this machine. For a tool that
    may reach the *files* of *log*, the text is a warning.
    """
    if workspace is None or workspace.machine != machine_name():
        return ""
    warning = ""
    confined = not tool.needs_workspace or tool.target.startswith(_FILE_TOOLS)
    if not confined and within(workspace, files):
        warning = f"{REACHES_LOG} {log}: it is in the workspace."
    return "\n".join(filter(None, (warning, _change(tool, arguments, workspace))))


def _change(tool: ToolSpec, arguments: Mapping[str, JsonValue], workspace: Workspace) -> str:
    if tool.writes is None:
        return ""
    path, content = (arguments.get(name) for name in tool.writes)
    if not isinstance(path, str) or not isinstance(content, str):
        return ""
    before = _content(Path(workspace.path), path)
    return "" if before is None else _difference(path, before, content)


def _content(root: Path, path: str) -> str | None:
    """Return the text at *path*; empty if there is no file; None if it is not text."""
    try:
        if not (root / path).parent.exists():
            return ""  # the folders are created with the file
        with parent_of(root, path) as (parent, name):
            if kind_of(parent, name) is None:
                return ""
            with fdopen(open_file(parent, name, path, HardLinks(root)), "rb") as file:
                found = file.read(LARGEST + 1)
        return found.decode() if len(found) <= LARGEST else None
    except (OSError, ValueError, CuelineError):
        return None


def _difference(path: str, before: str, after: str) -> str:
    old, new = before.splitlines(), after.splitlines()
    if old == new and before != after:
        return f"a/{path}: only the ends of lines change"
    if len(old) * len(new) > PAIRS:
        was = hashlib.sha256(before.encode()).hexdigest()[:12]
        return f"a/{path}: {len(old):,} lines ({was}) become {len(new):,}, too many to compare"
    lines = list(unified_diff(old, new, f"a/{path}", f"b/{path}", lineterm=""))
    if len(lines) > LINES:
        lines[LINES:] = [f"[{len(lines) - LINES} lines more]"]
    return "\n".join(lines)
