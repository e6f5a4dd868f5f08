"""An open file, and whether its path still leads to it."""

import os
from pathlib import Path

_OPEN = getattr(os, "O_PATH", None)
"""Opens no content, and closing it drops no lock. Linux only."""


class FileIdentity:
    """One file of a log, as it was when it was opened.

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
        """Return what happened to the file; None if its path still leads to it.

        Raises:
            OSError: it cannot be told.
        """
        try:
            if self._look() == self._place:
                return self._shrank()
        except (FileNotFoundError, NotADirectoryError):
            return "was removed"
        return "was replaced by another file" if self.path.exists() else "was removed"

    def close(self) -> None:
        """Close it."""
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
