"""Finds the process that holds the log's lock."""

from pathlib import Path

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
    """Return the process that is writing, if the machine can tell."""
    try:
        return find_lock_owner(_LOCKS.read_text(), shared.stat().st_ino)
    except (OSError, ValueError):
        return None
