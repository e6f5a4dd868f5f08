"""Folders that only their owner may enter, whatever the umask."""

from collections.abc import Mapping
from pathlib import Path


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
