"""Access to a folder that never leaves it.

Each component of a path is opened from the descriptor of the previous component, and links
are not followed. So a component that is replaced between two checks is refused, too.

A path that leads, or may lead, out of the folder raises `PathEscapeError`; a path that
cannot be opened raises `ToolFailedError`.
"""

import errno
import os
import stat
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from cueline.errors import PathEscapeError, ToolFailedError
from cueline.events.agent import Workspace
from cueline.files import LOG_FOLDER

"""The name of log folders, which file tools refuse everywhere."""

REACHES_LOG = "This call can read, change or delete the log"
"""The start of the warning about a call that can reach the log."""


def names_log_folder(names: Iterable[str]) -> bool:
    """Whether a path of these components leads into a log's folder."""
    # Some file systems ignore case.
    return any(name.casefold() == LOG_FOLDER for name in names)


def within(workspace: Workspace, files: Iterable[Path]) -> list[Path]:
    """Return the *files* that are in *workspace*, as paths relative to the workspace."""
    root = Path(os.path.realpath(workspace.path))
    return [each.relative_to(root) for each in files if each.is_relative_to(root)]


ENTER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
# Without O_NONBLOCK, opening a FIFO waits for a writer.
LOOK = os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOCTTY
SEVERAL = 2
"""The number of names from which a file has hard links."""


@contextmanager
def parent_of(root: Path, path: str, *, create: bool = False) -> Iterator[tuple[int, str]]:
    """Open the folder of *path*; yield its descriptor, and the last name."""
    *folders, name = names_in(path) or [""]
    if not name:
        raise failure(path, "is the workspace itself")
    with open_folder(root, folders, path, create=create) as parent:
        yield parent, name


@contextmanager
def folder_at(root: Path, path: str) -> Iterator[int]:
    """Open the folder at *path*."""
    with open_folder(root, names_in(path), path) as folder:
        yield folder


def names_in(path: str) -> list[str]:
    """Return the components of *path*."""
    if path.startswith("/"):
        raise PathEscapeError(path, "is absolute; paths are relative to the workspace")
    names = [name for name in path.split("/") if name not in {"", "."}]
    if ".." in names:
        raise PathEscapeError(path, "goes up by `..`; paths stay inside the workspace")
    if "\0" in path:
        raise failure(path, "has a NUL in it")
    if names_log_folder(names):
        raise PathEscapeError(
            path, f"`{LOG_FOLDER}` holds cueline's log; file tools leave it alone"
        )
    return names


@contextmanager
def open_folder(root: Path, names: list[str], path: str, *, create: bool = False) -> Iterator[int]:
    """Open the folders from *root* through *names*; keep the last one open for the block."""
    try:
        folder = os.open(root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except OSError as error:
        raise failure("the workspace", str(error.strerror).lower()) from None
    try:
        for name in names:
            inner = enter(folder, name, path, create=create)
            os.close(folder)
            folder = inner
        yield folder
    finally:
        os.close(folder)


def enter(parent: int, name: str, path: str, *, create: bool = False) -> int:
    """Open the folder *name* in *parent*."""
    with refusals(parent, name, path):
        if create:
            with suppress(FileExistsError):
                os.mkdir(name, dir_fd=parent)
                os.fsync(parent)
        return os.open(name, ENTER, dir_fd=parent)


class HardLinks:
    """Finds which files of a folder have no name outside it; scans the folder at most once."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._names: Counter[tuple[int, int]] | None = None
        """The number of names in the folder for each file with several names."""

    def all_inside(self, status: os.stat_result) -> bool:
        """Whether each name of a file is in the folder."""
        if status.st_nlink < SEVERAL:
            return True
        if self._names is None:
            self._names = Counter(self._with_several())
        return self._names[status.st_dev, status.st_ino] >= status.st_nlink

    def _with_several(self) -> Iterator[tuple[int, int]]:
        for folder, _, names in os.walk(self._root):
            for name in names:
                with suppress(OSError):
                    status = Path(folder, name).lstat()
                    if status.st_nlink >= SEVERAL:
                        yield status.st_dev, status.st_ino


def open_file(parent: int, name: str, path: str, links: HardLinks) -> int:
    """Open a regular file for reading, if all its names are inside the folder."""
    with refusals(parent, name, path):
        file = os.open(name, LOOK, dir_fd=parent)
    status = os.fstat(file)
    kind = stat.S_IFMT(status.st_mode)
    if kind == stat.S_IFREG and links.all_inside(status):
        return file
    os.close(file)
    if kind != stat.S_IFREG:
        raise failure(path, f"is a {word_for(kind)}, not a file")
    why = f"has {status.st_nlink} names (hard links), and some are not in the workspace"
    raise PathEscapeError(path, f"`{name}` {why}; copy the file instead")


@contextmanager
def refusals(parent: int, name: str, path: str) -> Iterator[None]:
    """Convert system errors to errors for the model."""
    try:
        yield
    except OSError as error:
        if error.errno in {errno.ELOOP, errno.ENOTDIR, errno.EMLINK}:
            refuse_link(parent, name, path)
        raise failure(path, str(error.strerror).lower()) from None


def refuse_link(parent: int, name: str, path: str) -> None:
    """Raise if *name* is a link."""
    if kind_of(parent, name) == stat.S_IFLNK:
        raise PathEscapeError(path, f"`{name}` is a symbolic link, and links are not followed")


def kind_of(parent: int, name: str) -> int | None:
    """Return the type bits of *name*; None if it does not exist."""
    try:
        return stat.S_IFMT(os.stat(name, dir_fd=parent, follow_symlinks=False).st_mode)
    except OSError:
        return None


def word_for(kind: int) -> str:
    """Return the word for the type *kind*."""
    words = {
        stat.S_IFDIR: "folder",
        stat.S_IFLNK: "symbolic link",
        stat.S_IFIFO: "named pipe",
        stat.S_IFSOCK: "socket",
    }
    return words.get(kind, "device")


def failure(path: str, reason: str) -> ToolFailedError:
    """Return the error for the model, with *path* and *reason*."""
    return ToolFailedError("tool_error", f"{path}: {reason}")
