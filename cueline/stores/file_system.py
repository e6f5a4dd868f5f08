"""The type of the file system of a path."""

import os
import re
from pathlib import Path

from cueline.errors import LogUnavailableError

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
