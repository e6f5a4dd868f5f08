"""The built-in file tools, which stay inside the workspace."""

import os
import secrets
import stat
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Annotated, BinaryIO

from pydantic import Field

from cueline.events.message import IMAGE_LIMIT, LONGEST_START, image_type
from cueline.events.sanitize import CUT
from cueline.tools.before_image import recorded_change
from cueline.tools.folder import (
    HardLinks,
    failure,
    kind_of,
    open_file,
    parent_of,
    refusals,
    refuse_link,
    word_for,
)
from cueline.tools.tool import Image, ToolContext, tool

READ_LIMIT = 200_000
EDIT_LIMIT = 10_000_000
PEEK = 8192

Inside = Annotated[str, Field(description="Relative to the workspace.")]
AtLeastOne = Annotated[int, Field(ge=1)]


@tool(read_only=True, needs_workspace=True, paths=["path"])
def read_file(
    path: Inside, start_line: AtLeastOne = 1, max_lines: AtLeastOne = 2000, *, context: ToolContext
) -> str | Image:
    """Read a text file or an image (PNG, JPEG, GIF, WebP) of the workspace.

    At most 200,000 bytes are returned; a note at the end says where to go on.
    """
    return read_in(context.workspace, path, start_line, max_lines)


def read_in(root: Path, path: str, start_line: int = 1, max_lines: int = 2000) -> str | Image:
    """Return a text file or an image of the folder *root*; see `read_file`.

    Raises:
        PathEscapeError: *path* leads out of the folder.
        ToolFailedError: it cannot be read.
    """
    links = HardLinks(root)
    with (
        parent_of(root, path) as (parent, name),
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
    with (
        parent_of(context.workspace, path, create=True) as (parent, name),
        recorded_change(context, parent, name, path, data),
    ):
        replace(parent, name, path, data)
    return f"wrote {len(data):,} bytes to {path}"


@tool(needs_workspace=True, paths=["path"])
def edit_file(  # noqa: D417 - the model is not told of the context
    path: Inside,
    old: Annotated[str, Field(min_length=1)],
    new: str,
    every: bool = False,  # noqa: FBT001, FBT002 - the model names it
    *,
    context: ToolContext,
) -> str:
    """Replace a text in a file of the workspace; the rest of the file stays as it is.

    Args:
        path: the file, relative to the workspace.
        old: the text to replace, exactly as it is in the file, with its spaces and line ends. It
            has to be there once: name enough of the text around it.
        new: the text that takes its place.
        every: whether each of several places is replaced.
    """
    links = HardLinks(context.workspace)
    with parent_of(context.workspace, path) as (parent, name):
        with os.fdopen(open_file(parent, name, path, links), "rb") as file:
            before = file.read(EDIT_LIMIT + 1)
        if len(before) > EDIT_LIMIT:
            raise failure(path, f"is larger than {EDIT_LIMIT:,} bytes; edit it by a command")
        try:
            text = before.decode()
        except UnicodeDecodeError:
            raise failure(path, "is no text in UTF-8; edit it by a command") from None
        try:
            after = edited(text, old, new, every=every)
        except ValueError as error:
            raise failure(path, str(error)) from None
        with recorded_change(context, parent, name, path, after.encode()):
            replace(parent, name, path, after.encode())
    places = text.count(old)
    return f"replaced {'1 place' if places == 1 else f'{places} places'} in {path}"


@tool(idempotent=True, sensitive=True, needs_workspace=True, paths=["path"])
def delete_file(path: Inside, *, context: ToolContext) -> str:
    """Delete one file of the workspace; a file that is not there is no error."""
    with (
        parent_of(context.workspace, path) as (parent, name),
        refusals(parent, name, path),
        recorded_change(context, parent, name, path, None),
    ):
        if kind_of(parent, name) == stat.S_IFDIR:
            raise failure(path, "is a folder; files are deleted one by one")
        try:
            os.unlink(name, dir_fd=parent)  # removes a link, never its target
        except FileNotFoundError:
            return f"{path} is not there"
        os.fsync(parent)
    return f"deleted {path}"


def edited(text: str, old: str, new: str, *, every: bool) -> str:
    """Return *text* with *new* in place of *old*.

    Raises:
        ValueError: *old* is not there, or more than once; the message says where.
    """
    places = text.count(old)
    if places == 0:
        if "\r\n" in text and old.replace("\n", "\r\n") in text:
            raise ValueError("has the old text with other line ends: its lines end in \\r\\n")
        near = _line_like(text, old)
        raise ValueError(f"does not have the old text{near}; read the file, and copy it exactly")
    if places > 1 and not every:
        lines = ", ".join(map(str, _lines_with(text, old, 5)))
        more = " …" if places > 5 else ""  # noqa: PLR2004 - as above
        why = "name more of the text around one, or set every"
        raise ValueError(f"has the old text {places} times, at the lines {lines}{more}; {why}")
    return text.replace(old, new)


def _lines_with(text: str, old: str, most: int) -> list[int]:
    """Return the numbers of the lines at which *old* begins, at most so many."""
    found: list[int] = []
    at = text.find(old)
    while at >= 0 and len(found) < most:
        found.append(text.count("\n", 0, at) + 1)
        at = text.find(old, at + len(old))
    return found


def _line_like(text: str, old: str) -> str:
    """Return which line has the first line of *old* with other spaces; empty if none has."""
    wanted = "".join(old.strip().split("\n")[0].split())
    for number, line in enumerate(text.split("\n"), 1):
        if wanted and wanted in "".join(line.split()):
            return f", but line {number} is like its first line"
    return ""


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


def put(parent: int, name: str, path: str, content: bytes | None, mode: int | None = None) -> None:
    """Write *content* as `replace` does, or remove the file if it is None."""
    if content is not None:
        replace(parent, name, path, content, mode)
        return
    with refusals(parent, name, path):
        os.unlink(name, dir_fd=parent)
        os.fsync(parent)


def replace(parent: int, name: str, path: str, data: bytes, mode: int | None = None) -> None:
    """Write *data* under *name* atomically, on disk before it is visible.

    The file gets the permissions *mode*, by default those that it has.
    """
    refuse_link(parent, name, path)
    kind = kind_of(parent, name)
    if kind not in {None, stat.S_IFREG}:
        raise failure(path, f"is a {word_for(kind or 0)}, not a file")
    temporary = f".{secrets.token_hex(8)}.tmp"
    with refusals(parent, name, path):
        try:
            write(parent, temporary, data, mode=mode_of(parent, name) if mode is None else mode)
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
