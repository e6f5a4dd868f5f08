"""The tools that change several files: all of them, or none."""

import hashlib
from base64 import b64decode
from collections.abc import Collection, Sequence
from contextlib import suppress
from os import fdopen
from pathlib import Path
from typing import Annotated, NamedTuple

from pydantic import BaseModel, Field

from cueline.errors import CuelineError, ToolFailedError
from cueline.tools.before_image import recorded_change
from cueline.tools.files import EDIT_LIMIT, put
from cueline.tools.folder import (
    HardLinks,
    failure,
    kind_of,
    names_in,
    open_file,
    open_folder,
    parent_of,
)
from cueline.tools.patch import FilePatch, apply, parse
from cueline.tools.tool import ToolContext, tool


@tool(needs_workspace=True, paths=["paths"])
def apply_patch(  # noqa: D417 - the model is not told of the context
    paths: Annotated[list[str], Field(min_length=1)], patch: str, *, context: ToolContext
) -> str:
    """Apply a unified diff, as `git diff` or `diff -u` writes it, to files of the workspace.

    All hunks are checked before anything is written. A hunk may be moved, but its lines have to be
    in the file exactly.

    Args:
        paths: all files that the patch changes, creates or deletes, relative to the workspace.
        patch: the diff, with the lines `---`, `+++` and `@@ -1,3 +1,4 @@`; `/dev/null` for a file
            that is created or deleted.
    """
    changes = patched(context.workspace, paths, patch)
    write_all(context, changes)
    return "\n".join(f"{each.verb} {each.path}" for each in changes)


class FileState(BaseModel):
    """What a file shall hold, and what it has to hold before."""

    path: str
    content: str | None
    """Its new content; None: it is deleted."""
    base64: bool = False
    """Whether *content* is in base64."""
    expected: str
    """The sha256 of its present content, in hex; empty: there is no file."""
    digest: str
    """The sha256 of its new content, in hex; empty: it is deleted."""
    mode: int | None = None
    """Its new permissions; None: as they are."""

    def data(self) -> bytes | None:
        """Return the new content; None: the file is deleted.

        Raises:
            ToolFailedError: it is not the content with the digest, for a secret was taken out.
        """
        content = None if self.content is None else self.content.encode()
        if self.base64 and content is not None:
            content = b64decode(content)
        if digest_of(content) != self.digest:
            raise failure(self.path, "was not recorded as it was; perhaps it holds a secret")
        return content


@tool(idempotent=True, sensitive=True, needs_workspace=True, paths=["paths"])
def restore_files(paths: list[str], files: list[FileState], *, context: ToolContext) -> str:
    """Put back what files held before a session changed them.

    A file that holds something else than the session left there is not touched, nor is any other.
    """
    changes = restored(context.workspace, paths, files)
    write_all(context, changes)
    return "\n".join(f"restored {each.path}" for each in changes) or "all files are as they were"


def restored(root: Path, paths: Sequence[str], files: Sequence[FileState]) -> list["Patched"]:
    """Return the changes of those *files* that are not as they shall be, and write nothing.

    Raises:
        ToolFailedError: a file has changed since, or *paths* does not name it.
        PathEscapeError: a path leads outside.
    """
    changes = []
    for each in files:
        if each.path not in paths:
            raise failure(each.path, "is not named in `paths`")
        before, after = content_at(root, each.path), each.data()
        if before == after:
            continue
        if digest_of(before) != each.expected:
            raise failure(each.path, "has changed since, so it is not restored; nothing is")
        changes.append(Patched(each.path, before, after, each.mode))
    return changes


def digest_of(content: bytes | None) -> str:
    """Return the sha256 of *content* in hex; empty if there is no file."""
    return "" if content is None else hashlib.sha256(content).hexdigest()


def write_all(context: ToolContext, changes: Sequence["Patched"]) -> None:
    """Write *changes*; if one fails, put back those before it."""
    done: list[Patched] = []
    try:
        for each in changes:
            with (
                parent_of(context.workspace, each.path, create=True) as (parent, name),
                recorded_change(context, parent, name, each.path, each.after),
            ):
                done.append(each)
                put(parent, name, each.path, each.after, each.mode)
    except BaseException:
        modes = {each.path: each.mode for each in context.changes}
        for each in reversed(done):
            with (
                suppress(CuelineError),
                parent_of(context.workspace, each.path) as (parent, name),
            ):
                put(parent, name, each.path, each.before, modes.get(each.path))
        raise


class Patched(NamedTuple):
    """A file before and after a patch; None: there is no file."""

    path: str
    before: bytes | None
    after: bytes | None
    mode: int | None
    """The permissions after; None: as they are."""

    @property
    def verb(self) -> str:
        """What the patch did with the file."""
        if self.before is None:
            return "created"
        return "deleted" if self.after is None else "changed"


def patched(root: Path, paths: Sequence[str], patch: str) -> list[Patched]:
    """Return the files that *patch* changes, which *paths* name, and write nothing.

    Raises:
        ToolFailedError: the patch is none, does not fit, or changes another file.
        PathEscapeError: a path leads outside.
    """
    allowed = {"/".join(names_in(path)) for path in paths}
    changed: dict[str, Patched] = {}
    try:
        for each in parse(patch):
            path = _meant(each, allowed)
            known = changed.get(path)
            before = content_at(root, path) if known is None else known.after
            after = _after(each, path, before)
            first = before if known is None else known.before
            changed[path] = Patched(path, first, after, 0o755 if each.executable else None)
    except ValueError as error:
        raise ToolFailedError("tool_error", f"the patch is not applied: {error}") from None
    return list(changed.values())


def _meant(change: FilePatch, allowed: Collection[str]) -> str:
    """Return which of the *allowed* paths is that of *change*."""
    found = change.paths()
    for path in found:
        if path in allowed:
            return path
    raise ValueError(f"it changes {found[0]!r}, which `paths` does not name")


def _after(change: FilePatch, path: str, before: bytes | None) -> bytes | None:
    """Return the content of a file after *change*; None: it is deleted."""
    if change.creates and before is not None:
        raise ValueError(f"{path}: the patch creates it, and it is there")
    if before is None and not change.creates:
        raise ValueError(f"{path}: there is no such file")
    try:
        after = apply(change, before or b"")
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from None
    if change.deletes and after:
        raise ValueError(f"{path}: the patch deletes it, but not all of its lines")
    return None if change.deletes else after


def content_at(root: Path, path: str) -> bytes | None:
    """Return the content of the file at *path*; None if there is no file."""
    *folders, _ = names_in(path)
    for depth in range(len(folders)):
        with open_folder(root, folders[:depth], path) as folder:
            if kind_of(folder, folders[depth]) is None:
                return None
    with parent_of(root, path) as (parent, name):
        if kind_of(parent, name) is None:
            return None
        with fdopen(open_file(parent, name, path, HardLinks(root)), "rb") as file:
            found = file.read(EDIT_LIMIT + 1)
    if len(found) > EDIT_LIMIT:
        raise failure(path, f"is larger than {EDIT_LIMIT:,} bytes; change it by a command")
    return found
