"""Handles files of this machine: private folders, texts from outside, the limit of open files."""

import errno
import os
import resource
import stat
from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Final, TextIO

from cueline.errors import ConfigError

LOG_FOLDER: Final = ".cueline"
"""The folder with the default log."""


def personal_folder(environ: Mapping[str, str]) -> Path | None:
    """Return the folder of a person's settings for cueline; None if the environment names none."""
    if base := environ.get("XDG_CONFIG_HOME"):
        return Path(base) / "cueline"
    if home := environ.get("HOME"):
        return Path(home) / ".config" / "cueline"
    return None


def make_folder(folder: Path) -> None:
    """Make *folder* and the missing folders above it, with mode 0700; existing folders stay.

    Raises:
        OSError: a folder cannot be made.
    """
    for each in (*reversed(folder.parents), folder):
        if not each.is_dir():
            each.mkdir(mode=0o700, exist_ok=True)


def rename_for_good(source: Path, target: Path) -> None:
    """Give a file another name in its folder; a power cut does not undo it.

    Raises:
        OSError: it cannot be renamed.
    """
    source.replace(target)
    folder = os.open(target.parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


def write_whole(path: Path, text: str) -> None:
    """Write a file that is there whole, or not at all: under another name, synced, and renamed.

    Raises:
        ConfigError: it cannot be written; a former file of the name stays.
    """
    if path.is_dir():
        raise ConfigError(str(path), f"it cannot be written: {os.strerror(errno.EISDIR)}")
    if path.exists() and not path.is_file():  # `/dev/null` would be gone
        raise ConfigError(str(path), "it is no regular file; name a file")
    part = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        make_folder(path.parent)
        try:
            with part.open("w", encoding="utf-8") as file:
                file.write(text)
                file.flush()
                os.fsync(file.fileno())
            rename_for_good(part, path)
        finally:
            part.unlink(missing_ok=True)
    except OSError as error:
        raise ConfigError(str(path), f"it cannot be written: {error.strerror}") from error


@dataclass(frozen=True, slots=True)
class Trust:
    """The files that a person trusts; *folder* has the hash of the content of each file.

    The content of a log changes with use, so *folder* has the hash of the log's id.
    """

    folder: Path | None
    """The folder with the hashes; None: no file is trusted."""

    def holds(self, path: Path, content: bytes) -> bool:
        """Whether a person trusts the file at *path* with exactly this *content*."""
        note = self._note(path)
        try:
            return note is not None and note.read_text() == sha256(content).hexdigest()
        except OSError:
            return False

    def add(self, path: Path, content: bytes) -> None:
        """Record that a person trusts the file at *path* with exactly this *content*.

        Raises:
            ConfigError: the trust cannot be recorded; make the folder in the message writable.
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
        """Record that the file at *path* is not trusted; return whether it was trusted."""
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


LONGEST: Final = 100 * 1024 * 1024
"""The length of the longest text, in characters; agents, goals and scripts are shorter."""
_HANDED: Final = {"/dev", "/dev/fd", "/proc/self/fd"}
"""The folders of stdin and of the pipes of a shell's `<(…)`."""


def read_text_file(path: Path) -> str:
    """Return the text of the file at *path*, without a byte order mark; see `read_to_end`."""
    refuse_endless(path)
    with path.open(encoding="utf-8-sig") as file:
        return read_to_end(file, str(path))


def refuse_endless(path: Path) -> None:
    """Raise if a read of *path* may wait without end.

    Raises:
        ConfigError: the file is a named pipe, a device or a socket.
        OSError: the type of the file cannot be read.
    """
    mode = path.stat().st_mode
    is_handed = stat.S_ISFIFO(mode) and str(path.parent) in _HANDED
    is_file = stat.S_ISREG(mode) or stat.S_ISDIR(mode)  # `open` reports a folder
    if not (is_file or is_handed or str(path) == os.devnull):
        raise ConfigError(str(path), "it is a named pipe, a device or a socket; name a file")


def read_to_end(source: TextIO, name: str) -> str:
    """Return the text of *source*.

    Raises:
        ConfigError: the text is too long; the message has the *name*.
        OSError: the source cannot be read.
        UnicodeDecodeError: the content is not text.
    """
    text = source.read(LONGEST + 1)
    if len(text) > LONGEST:
        raise ConfigError(name, "it is longer than 100 MB")
    return text


SPARE = 4
"""The number of files that SQLite opens for one log; with fewer left, SQLite fails."""
USUAL = 1024
"""A sufficient limit of open files, which messages advise if the limit is lower."""
_ALL_OPEN = (
    "no more files can be opened: all processes of this machine together have as many "
    "as it allows; end what holds them, then try again"
)
_NO_MORE = (
    "which is its hard limit; root can raise that: `nofile` in /etc/security/limits.conf, "
    "`LimitNOFILE` of a service, `--ulimit nofile` of a container"
)


def shortage_of(error: BaseException | None) -> str | None:
    """Return what to do if *error* or its cause is the limit of open files; else None."""
    while error is not None:
        if isinstance(error, OSError) and (said := _said_of(error)) is not None:
            return said
        error = error.__cause__ or error.__context__
    return None


def shortage() -> str | None:
    """Return what to do if hardly any file can be opened now; else None.

    The function tries to open files, because SQLite reports no reason for a failed open.
    """
    opened: list[int] = []
    try:
        opened.extend(os.open(os.devnull, os.O_RDONLY) for _ in range(SPARE))
    except OSError as error:
        return _said_of(error)
    finally:
        for each in opened:
            os.close(each)
    return None


def _said_of(error: OSError) -> str | None:
    if error.errno == errno.ENFILE:
        return _ALL_OPEN  # even if this process may open more
    if error.errno != errno.EMFILE:
        return None
    limit, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    said = f"no more files can be opened: this process may have {limit} (`ulimit -n`)"
    if limit == most:
        return f"{said}, {_NO_MORE}"
    advised = max(USUAL, 2 * limit)
    # A shell can raise its limit up to the hard limit only.
    advised = advised if most == resource.RLIM_INFINITY else min(advised, most)
    return f"{said}; allow more with `ulimit -n {advised}`, then try again"
