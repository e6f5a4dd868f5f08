"""The bytes of a file before a change, which are recorded with the outcome of the call."""

import hashlib
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple

from cueline.actors.tool_port import FileImage
from cueline.tools.folder import LOOK, HardLinks
from cueline.tools.tool import OUTPUT_LIMIT, ToolContext

BEFORE_LIMIT = 10_000_000


class _Before(NamedTuple):
    digest: str = ""
    content: bytes | None = None
    mode: int | None = None


@contextmanager
def recorded_change(
    context: ToolContext, parent: int, name: str, path: str, after: bytes | None
) -> Iterator[None]:
    """Record that the block changes the file *name* to *after*; None: it deletes the file.

    The bytes before are kept up to 10 MB a file, and 100 MB a call; not those of a file that has
    a name outside of the workspace. A block that raises, or changes nothing, records nothing.
    """
    kept = sum(len(each.before or b"") for each in context.changes)
    before = _read(context, parent, name, OUTPUT_LIMIT - kept)
    yield
    digest = "" if after is None else hashlib.sha256(after).hexdigest()
    if before is not None and before.digest != digest:
        context.changes.append(FileImage(path, before.digest, digest, before.mode, before.content))


def _read(context: ToolContext, parent: int, name: str, room: int) -> _Before | None:
    """Return the file before the change; None for what is no file, or cannot be read."""
    try:
        opened = os.open(name, LOOK, dir_fd=parent)
    except FileNotFoundError:
        return _Before()
    except OSError:
        return None
    status = os.fstat(opened)
    if not stat.S_ISREG(status.st_mode):
        os.close(opened)
        return None
    with os.fdopen(opened, "rb") as file:
        mode = stat.S_IMODE(status.st_mode)
        if status.st_size > min(BEFORE_LIMIT, room):
            return _Before(hashlib.file_digest(file, "sha256").hexdigest(), None, mode)
        content = file.read()
        digest = hashlib.sha256(content).hexdigest()
        inside = HardLinks(context.workspace).all_inside(status)
        return _Before(digest, content if inside else None, mode)
