"""A file that is open, and whether it still lies where others find it."""

import os
from pathlib import Path

_OPEN = getattr(os, "O_PATH", None)
"""Opens no content, and closing it lets go of no lock. Linux only."""


class FileIdentity:
    """One file of a log, as it was found when it was opened.

    Where Linux can tell from the open file where it lies, the file itself is
    not asked: since Linux 6.13 whoever asks for its times has the next write
    set them anew, and then each fsync costs a commit of the file system's own
    journal, 0.07 ms. One that *only_grows* is asked for its size; a commit
    writes to another, the WAL.
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
        """Say what became of the file; None while it is what others find.

        Raises:
            OSError: nobody can tell.
        """
        try:
            if self._look() == self._place:
                return self._shrank()
        except (FileNotFoundError, NotADirectoryError):
            return "was removed"
        return "was replaced by another file" if self.path.exists() else "was removed"

    def close(self) -> None:
        """Let go of it."""
        if self._fd is not None:
            os.close(self._fd)

    def _shrank(self) -> str | None:
        if self._size is None:
            return None
        size = self._length()
        # What it grows to after a cut is not what was in it.
        self._cut = self._cut or size < self._size
        self._size = size
        return "was cut short" if self._cut else None

    def _length(self) -> int:
        found = self.path.stat() if self._fd is None else os.fstat(self._fd)
        return found.st_size

    def _look(self) -> str | tuple[int, int]:
        if self._link is not None:
            return os.readlink(self._link)  # noqa: PTH115 - asked at each commit
        found = self.path.stat()
        return found.st_dev, found.st_ino
