"""The backend of logs in a SQLite file, with other files beside it."""

import os
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from cueline.clock import Clock, SystemClock
from cueline.errors import ConfigError, LogUnavailableError
from cueline.events.log_url import LogUrl
from cueline.events.store import to_us
from cueline.files import make_folder
from cueline.stores.file_identity import refuse_place
from cueline.stores.presence import SqlitePresence
from cueline.stores.snapshots import SqliteSnapshots
from cueline.stores.sqlite import SqliteStore
from cueline.stores.sqlite_file import LogFile, real, vacuum
from cueline.stores.sqlite_tables import SqliteRows

if TYPE_CHECKING:
    from cueline.projections.views import Views


class SqliteBackend:
    """See `LogBackend`."""

    writer_place: Literal["machine"] = "machine"

    def __init__(self, url: LogUrl) -> None:
        self.url = url
        self._path = Path(url.rest)

    def exists(self) -> bool:
        return self._path.exists()

    def found(self) -> tuple[Path, str] | None:
        log, folder = self._path, self._path.parent
        try:
            id_ = LogFile(log).open(must_exist=True, read_only=True, now_us=0)
        except LogUnavailableError:  # there is no log, or another process is creating it
            id_ = ""
        own = {f"{log.name}{end}" for end in ("", "-wal", "-shm", "-journal")}
        others = (e.name for e in folder.glob("*") if e.name not in own)
        brought = log.is_symlink() or folder.is_symlink()
        brought = brought or any(name.startswith(log.name) for name in others)
        return (log, id_) if id_ or brought else None

    def check(self, *, shared: bool = False) -> None:  # noqa: ARG002 - a file can always be shared
        refuse_place(self._path)

    def open(
        self, clock: Clock, *, must_exist: bool = False, read_only: bool = False
    ) -> SqliteStore:
        return SqliteStore.open(
            self._path,
            clock,
            must_exist=must_exist,
            read_only=read_only,
            snapshots=self.open_snapshots(),
        )

    def migrate(self, writers: Sequence[str] = (), readers: Sequence[str] = ()) -> bool:
        if writers or readers:
            raise ConfigError(str(self.url), "only a database server has roles")
        made = not self.exists()
        now_us = to_us(SystemClock().now())
        LogFile(self._path).open(must_exist=False, read_only=False, now_us=now_us)
        return made

    def open_rows(self, *, to_write: bool = False) -> SqliteRows:
        file = LogFile(self._path)
        now_us = to_us(SystemClock().now())
        file.open(must_exist=not to_write, read_only=not to_write, now_us=now_us, copying=to_write)
        return SqliteRows(file, to_write=to_write)

    def describe(self) -> None:
        """See `LogBackend.describe`."""

    def open_presence(self, clock: Clock) -> SqlitePresence:
        # Not in the log's file: presence is volatile, and discarded if damaged. One board for all
        # links to the log: with two, living processes would count as dead.
        return SqlitePresence(self._own(self._beside(".presence")), clock)

    def open_snapshots(self) -> SqliteSnapshots:
        return SqliteSnapshots(self._own(self._beside(".snapshots")))

    def open_views(self) -> "Views":
        from cueline.projections.views import Views  # noqa: PLC0415 - slow to import

        return Views(self._own(self._path.with_name(f"{self._path.name}-views.db")))

    def read_up(self) -> str | None:
        try:
            return self._beside("-up.json").read_text()
        except (OSError, ValueError):
            return None

    def write_up(self, text: str) -> None:
        draft = self._beside(f"-up.json.{os.getpid()}")
        draft.touch(0o600)
        draft.write_text(text)
        draft.replace(self._beside("-up.json"))

    def remove_up(self) -> None:
        self._beside("-up.json").unlink(missing_ok=True)

    def up_output(self) -> Path:
        make_folder(self._path.parent)
        return self._path.with_name(f"{self._path.name}-up.log")

    def scrub(self) -> None:
        with closing(self.open_views()) as views:
            views.overwrite_forgotten()
        for path in filter(Path.exists, (real(self._path), views.path)):
            vacuum(path)

    def files(self) -> Sequence[Path]:
        return real(self._path.parent) / self._path.name, real(self._path)

    def owns(self, path: Path) -> bool:
        log = real(self._path)
        beside = (f"{log.name}-", f"{log.name}.presence", f"{log.name}.snapshots")
        ours = path.name == log.name or path.name.startswith(beside)
        return ours and real(path.parent) == log.parent

    def _own(self, path: Path) -> Path:
        """Return *path*, a file beside the log, unless it is a link to another file.

        Raises:
            LogUnavailableError: it is a link; remove it.
        """
        if path.is_symlink():
            raise LogUnavailableError(str(path), "it is a link, and not by cueline: remove it")
        return path

    def _beside(self, suffix: str) -> Path:
        return Path(f"{real(self._path)}{suffix}")
