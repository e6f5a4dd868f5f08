"""Folders that only their owner may enter, whatever the umask; and what is noted in one."""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Final

from cueline.errors import ConfigError

LOG_FOLDER: Final = ".cueline"
"""Where a log is found by itself."""


def personal_folder(environ: Mapping[str, str]) -> Path | None:
    """Return the folder of what a person has set for cueline; None: there is no place for it."""
    if base := environ.get("XDG_CONFIG_HOME"):
        return Path(base) / "cueline"
    if home := environ.get("HOME"):
        return Path(home) / ".config" / "cueline"
    return None


def make_folder(folder: Path) -> None:
    """Make *folder*, and those above that are missing, with mode 0700; one that is there stays.

    Raises:
        OSError: it cannot be made.
    """
    for each in (*reversed(folder.parents), folder):
        if not each.is_dir():
            each.mkdir(mode=0o700, exist_ok=True)


@dataclass(frozen=True, slots=True)
class Trust:
    """The files that a person trusts, each as it was then; they are noted in *folder*.

    A log changes with its use, so it is noted with its id.
    """

    folder: Path | None
    """None: there is no place for it, and nothing is trusted."""

    def holds(self, path: Path, content: bytes) -> bool:
        """Whether the file at *path* is trusted, with this *content*."""
        note = self._note(path)
        try:
            return note is not None and note.read_text() == sha256(content).hexdigest()
        except OSError:
            return False

    def add(self, path: Path, content: bytes) -> None:
        """Trust the file at *path*, with this *content*.

        Raises:
            ConfigError: it cannot be noted; make the folder that it names writable.
        """
        note = self._note(path)
        if note is None:
            raise ConfigError("HOME", "is not set, so there is no place for what you trust; set it")
        try:
            make_folder(note.parent)
            note.write_text(sha256(content).hexdigest())
        except OSError as error:
            reason = f"what you trust cannot be noted there: {error.strerror}; make it writable"
            raise ConfigError(str(note.parent), reason) from error

    def remove(self, path: Path) -> bool:
        """Trust the file at *path* no more; return whether it was trusted."""
        note = self._note(path)
        known = note is not None and note.exists()
        if note is not None and known:
            note.unlink()
        return known

    def _note(self, path: Path) -> Path | None:
        # A link to a file that is trusted elsewhere is none: links are not followed.
        absolute = os.path.abspath(path)  # noqa: PTH100 - see above
        name = sha256(absolute.encode(errors="surrogateescape")).hexdigest()
        return None if self.folder is None else self.folder / "trusted" / name
