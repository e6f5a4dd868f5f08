"""The changes of a command on an overlay of its workspace, and how they come into the workspace.

The overlay's upper folder has what the command wrote: changed files whole, deleted ones as devices
0:0, and folders that hide those below them by an attribute. Links are never followed, so what comes
into the workspace stays in it.
"""

import hashlib
import os
import stat
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Final

from msgspec import Struct

from cueline.errors import PathEscapeError, ToolFailedError
from cueline.tools.folder import ENTER, LOOK, names_in, word_for

_OPAQUE: Final = "user.overlay.opaque"
_OF_OVERLAY: Final = ("user.overlay.origin", "user.overlay.impure", "user.overlay.opaque")
_PRIVILEGED: Final = stat.S_ISUID | stat.S_ISGID
MOST_CHANGES: Final = 50_000
"""The most changed paths of one call."""
_DEEPEST: Final = 300
"""The most folders around a changed path; the walk takes two frames for each."""
FOLDER: Final = "folder"
"""The mark of a folder."""


class HeldChange(Struct, frozen=True):
    """A changed path, with marks of what is there before and after; empty: nothing is there.

    The mark of a file is its permissions in octal and its sha256, that of a link its target.
    """

    path: str
    """The path relative to the workspace."""
    before: str
    after: str

    def __str__(self) -> str:
        """Return the change on a line: `edited src/a.py: 1f3a9c02e4d7 -> 90bd03c1a2ee`."""
        verb = "edited" if self.before and self.after else "new" if self.after else "deleted"
        marks = [_short(each) for each in (self.before, self.after) if each]
        return f"{verb} {self.path}: {' -> '.join(marks)}"

    @staticmethod
    def is_file(mark: str) -> bool:
        """Whether *mark* is that of a file."""
        return mark[:1].isdigit()


def _short(mark: str) -> str:
    mode, _, digest = mark.partition(" ")
    return f"{digest[:12]} ({mode})" if HeldChange.is_file(mark) else mark


def mark_of(folder: int, name: str) -> str:
    """Return the mark of *name* in *folder*; see `HeldChange`."""
    try:
        status = os.stat(name, dir_fd=folder, follow_symlinks=False)
    except FileNotFoundError:
        return ""
    kind = stat.S_IFMT(status.st_mode)
    if kind == stat.S_IFDIR:
        return FOLDER
    if kind == stat.S_IFLNK:
        return f"link {os.readlink(name, dir_fd=folder)}"
    if kind != stat.S_IFREG:
        return word_for(kind)
    with open(os.open(name, LOOK, dir_fd=folder), "rb") as file:  # noqa: PTH123 - a descriptor
        return f"{stat.S_IMODE(status.st_mode):o} {hashlib.file_digest(file, 'sha256').hexdigest()}"


def changes_in(upper: Path, workspace: Path) -> tuple[list[HeldChange], list[str]]:
    """Return the changes in the *upper* folder of an overlay of *workspace*, by path.

    Returns also the paths of what cannot be kept: sockets, pipes, privileged programs, the log's
    folder.

    Raises:
        ToolFailedError: there are too many, or one is too deep.
    """
    walk = _Walk()
    with _entered(None, str(upper)) as above, _entered(None, str(workspace)) as below:
        walk.walk(above, below, "", hides=False)
    return sorted(walk.found, key=lambda change: change.path), sorted(walk.left_out)


class _Walk:
    """Finds the changes in the upper folder of an overlay."""

    def __init__(self) -> None:
        self.found: list[HeldChange] = []
        self.left_out: list[str] = []

    @staticmethod
    def _check_depth(path: str) -> None:
        if path.count("/") > _DEEPEST:
            why = f"it changed what is in more than {_DEEPEST} folders, which is too deep to hold"
            raise ToolFailedError("tool_error", f"{why}; nothing was changed")

    def _add(self, path: str, before: str, after: str) -> None:
        if len(self.found) == MOST_CHANGES:
            why = f"it changed more than {MOST_CHANGES:,} files, which is too many to hold"
            raise ToolFailedError("tool_error", f"{why}; nothing was changed")
        if before != after:
            self.found.append(HeldChange(path, before, after))

    def walk(self, above: int, below: int | None, at: str, *, hides: bool) -> None:
        """Add the changes in the folder *at*; if it *hides* those below it, they are deleted."""
        names = os.listdir(above)
        for name in names:
            self._enter(above, below, name, f"{at}{name}", hides=hides)
        if hides and below is not None:
            for name in {*os.listdir(below)} - {*names}:  # noqa: PTH208 - of a descriptor
                self._delete(below, name, f"{at}{name}")

    def _enter(self, above: int, below: int | None, name: str, path: str, *, hides: bool) -> None:
        self._check_depth(path)
        status = os.stat(name, dir_fd=above, follow_symlinks=False)
        kind = stat.S_IFMT(status.st_mode)
        before = "" if below is None else mark_of(below, name)
        if kind == stat.S_IFCHR and status.st_rdev == 0:
            if below is not None and before:
                self._delete(below, name, path)
        elif self._is_kept(path, status):
            if before == FOLDER and kind != stat.S_IFDIR and below is not None:
                self._delete_inside(below, name, path)
            self._add(path, before, mark_of(above, name))
            if kind == stat.S_IFDIR:
                with _entered(above, name) as inner:
                    hides = hides or _OPAQUE in os.listxattr(inner)
                    if before != FOLDER or below is None:
                        self.walk(inner, None, f"{path}/", hides=hides)
                        return
                    with _entered(below, name) as under:
                        self.walk(inner, under, f"{path}/", hides=hides)

    def _is_kept(self, path: str, status: os.stat_result) -> bool:
        kind = stat.S_IFMT(status.st_mode)
        privileged = kind == stat.S_IFREG and status.st_mode & _PRIVILEGED
        kept = kind in (stat.S_IFREG, stat.S_IFDIR, stat.S_IFLNK) and not privileged
        with suppress(PathEscapeError):
            names_in(path)
            if kept:
                return True
        self.left_out.append(path)
        return False

    def _delete(self, below: int, name: str, path: str) -> None:
        self._check_depth(path)
        before = mark_of(below, name)
        if before == FOLDER:
            self._delete_inside(below, name, path)
        self._add(path, before, "")

    def _delete_inside(self, below: int, name: str, path: str) -> None:
        with _entered(below, name) as inner:
            for each in os.listdir(inner):  # noqa: PTH208 - of a descriptor
                self._delete(inner, each, f"{path}/{each}")


class _Descriptor(int):
    """A descriptor that can be closed."""

    def close(self) -> None:
        os.close(self)


def _entered(folder: int | None, name: str) -> closing[_Descriptor]:
    return closing(_Descriptor(os.open(name, ENTER, dir_fd=folder)))


Place = Callable[[str], tuple[int, str]]
"""Returns the descriptor of the folder of a path, and the path's last name; or raises `OSError`."""


@contextmanager
def places(root: Path) -> Iterator[Place]:
    """Yield the way to the folders below *root*; the last one stays open for the next path."""
    last: str | None = ""
    opened = os.open(root, ENTER)

    def place(path: str) -> tuple[int, str]:
        nonlocal last, opened
        above, _, name = path.rpartition("/")
        if above != last:
            inner = os.open(root, ENTER)
            os.close(opened)
            last, opened = None, inner
            for each in above.split("/") if above else ():
                inner = os.open(each, ENTER, dir_fd=opened)
                os.close(opened)
                opened = inner
            last = above
        return opened, name

    try:
        yield place
    finally:
        os.close(opened)


def check_unchanged(changes: Sequence[HeldChange], place: Place) -> None:
    """Raise if something else has changed what *changes* would change.

    Raises:
        ToolFailedError: nothing was changed.
    """
    new = {each.path for each in changes if each.after == FOLDER != each.before}
    for each in changes:
        if each.path.rpartition("/")[0] in new:
            continue  # its folder is not there yet
        try:
            now = mark_of(*place(each.path))
        except OSError:
            now = "nothing that can be read"
        if now != each.before:
            why = f"{each.path} has changed since the command ran"
            raise ToolFailedError("tool_error", f"{why}; nothing was changed: run it again")


def write_changes(changes: Sequence[HeldChange], source: Place, target: Place) -> None:
    """Write *changes* from *source* to *target*; a part of them may be written already.

    Raises:
        ToolFailedError: something else changes the same paths meanwhile; a part is written.
    """
    for each in reversed(changes):  # what is inside of a folder comes before the folder
        if not each.after or (each.before == FOLDER and each.after != FOLDER):
            _remove(each, target)
    for each in changes:
        if each.after:
            _put(each, source, target)


def _remove(change: HeldChange, target: Place) -> None:
    try:
        folder, name = target(change.path)
    except (FileNotFoundError, NotADirectoryError):
        return  # its folder was removed already, or something else is in its place
    now = mark_of(folder, name)
    if now == change.before:
        remove = os.rmdir if now == FOLDER else os.unlink
        remove(name, dir_fd=folder)
    elif now not in ("", change.after):
        raise _disturbed(change)


def _put(change: HeldChange, source: Place, target: Place) -> None:
    folder, name = target(change.path)
    now = mark_of(folder, name)
    if now == change.after:
        return
    if now not in ("", change.before):
        raise _disturbed(change)
    above, held = source(change.path)
    if change.after == FOLDER:
        if now:
            os.unlink(name, dir_fd=folder)
        mode = os.stat(held, dir_fd=above, follow_symlinks=False).st_mode
        os.mkdir(name, stat.S_IMODE(mode) & 0o777, dir_fd=folder)
        return
    _forget_overlay(above, held)
    os.rename(held, name, src_dir_fd=above, dst_dir_fd=folder)


def _forget_overlay(folder: int, name: str) -> None:
    """Remove the attributes of the overlay from a file."""
    with suppress(OSError):  # a link has none
        file = os.open(name, LOOK, dir_fd=folder)
        try:
            for each in os.listxattr(file):
                if each in _OF_OVERLAY:
                    os.removexattr(file, each)
        finally:
            os.close(file)


def _disturbed(change: HeldChange) -> ToolFailedError:
    why = f"{change.path} was changed by something else while the changes were written"
    return ToolFailedError("tool_error", f"{why}; some of them are in the workspace")
