"""Checks an open file of a log: its path, the process that locks it, and its file system."""

import os
import re
from pathlib import Path

from cueline.errors import LogUnavailableError

_OPEN = getattr(os, "O_PATH", None)
"""The flag to open a file without its content; closing it drops no lock. Linux only."""


class FileIdentity:
    """The identity of one file of a log at the time of its opening.

    On Linux, the path of the open file is read instead of its times: since Linux 6.13,
    reading the times of a file makes its next write update them, and each fsync then
    costs a journal commit of the file system, 0.07 ms. Only the size is read of a file
    that *only_grows*; a commit writes to another file, the WAL.
    """

    def __init__(self, path: Path, *, only_grows: bool = False) -> None:
        self.path = path
        self._link: str | None = None
        self._fd: int | None = None
        if _OPEN is not None and Path("/proc/self/fd").is_dir():
            self._fd = os.open(path, _OPEN)
            self._link = f"/proc/self/fd/{self._fd}"
        self._place = self._look()
        self._size = self._length() if only_grows else None
        self._cut = False

    def became(self) -> str | None:
        """Return the change of the file, removed or replaced; None if its path still leads to it.

        Raises:
            OSError: the file system cannot be read.
        """
        try:
            if self._look() == self._place:
                return self._shrank()
        except (FileNotFoundError, NotADirectoryError):
            return "was removed"
        return "was replaced by another file" if self.path.exists() else "was removed"

    def close(self) -> None:
        """Close the file."""
        if self._fd is not None:
            os.close(self._fd)

    def _shrank(self) -> str | None:
        if self._size is None:
            return None
        size = self._length()
        # New content after a cut is not the old content.
        self._cut = self._cut or size < self._size
        self._size = size
        return "was cut short" if self._cut else None

    def _length(self) -> int:
        found = self.path.stat() if self._fd is None else os.fstat(self._fd)
        return found.st_size

    def _look(self) -> str | tuple[int, int]:
        if self._link is not None:
            return os.readlink(self._link)  # noqa: PTH115 - called at each commit
        found = self.path.stat()
        return found.st_dev, found.st_ino


_LOCKS = Path("/proc/locks")
_WRITE_LOCK = "120"
"""The byte of a WAL's shared-memory file that a writer locks."""


def find_lock_owner(locks: str, inode: int) -> int | None:
    """Return the writing process according to *locks*, Linux's `/proc/locks`."""
    for line in locks.splitlines():
        fields = line.split()
        if "WRITE" not in fields:
            continue
        pid, place, start = fields[-4:-1]
        if place.rpartition(":")[2] == str(inode) and start == _WRITE_LOCK:
            return int(pid)
    return None


def lock_owner(shared: Path) -> int | None:
    """Return the writing process; None if it is unknown."""
    try:
        return find_lock_owner(_LOCKS.read_text(), shared.stat().st_ino)
    except (OSError, ValueError):
        return None


_MOUNTS = Path("/proc/self/mountinfo")
_ESCAPED = re.compile(r"\\([0-7]{3})")
_NETWORK = re.compile(
    r"9p|afs|beegfs|cifs|coda|davfs|gpfs|lustre|ncpfs|nfs4?|smb[23]|smbfs"
    r"|(fuse\.)?(ceph|glusterfs)|fuse\.(gcsfuse|rclone|s3fs|sshfs)"
)


def kind_of(path: Path, mounts: str) -> str:
    """Return the type of the file system of *path*, by *mounts*.

    *mounts* is the text of Linux's `/proc/self/mountinfo`; the type is empty if it does
    not list the path.
    """
    best, kind = -1, ""
    for line in mounts.splitlines():
        place, _, rest = line.partition(" - ")
        mounted = Path(_ESCAPED.sub(_unescaped, place.split(" ")[4]))
        # Later lines cover earlier ones at the same place.
        if path.is_relative_to(mounted) and len(mounted.parts) >= best:
            best, kind = len(mounted.parts), rest.split(" ")[0]
    return kind


def refuse_place(path: Path, mounts: str | None = None) -> None:
    """Raise for a path that SQLite interprets, or that is on a network file system.

    Raises:
        LogUnavailableError: choose a file on a local disk.
    """
    if path.parts and (path.parts[0].endswith(":") or path.parts[0].startswith("file:")):
        raise LogUnavailableError(str(path), "it names no file; name a path, or `memory:`")
    kind = kind_of(Path(os.path.realpath(path)), _mounts() if mounts is None else mounts)
    if _NETWORK.fullmatch(kind):
        raise LogUnavailableError(
            str(path),
            f"on a network file system ({kind}), where SQLite can lose data; "
            "choose a path on a local disk",
        )


def _mounts() -> str:
    try:
        return _MOUNTS.read_text()
    except OSError:
        return ""  # not Linux: unknown


def _unescaped(match: re.Match[str]) -> str:
    return chr(int(match[1], 8))
