"""A log in a SQLite file, with its files beside it."""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from cueline.clock import Clock, SystemClock
from cueline.errors import ConfigError
from cueline.events.log_url import LogUrl
from cueline.events.store import to_us
from cueline.private_folder import make_folder
from cueline.stores.file_system import refuse_place
from cueline.stores.presence import SqlitePresence
from cueline.stores.snapshots import SqliteSnapshots
from cueline.stores.sqlite import SqliteStore
from cueline.stores.sqlite_file import LogFile, real
from cueline.stores.sqlite_rows import SqliteRows

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
        return SqlitePresence(self._beside(".presence"), clock)

    def open_snapshots(self) -> SqliteSnapshots:
        return SqliteSnapshots(self._beside(".snapshots"))

    def open_views(self) -> "Views":
        from cueline.projections.views import Views  # noqa: PLC0415 - slow to import

        return Views(self._path.with_name(f"{self._path.name}-views.db"))

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

    def files(self) -> Sequence[Path]:
        return real(self._path.parent) / self._path.name, real(self._path)

    def owns(self, path: Path) -> bool:
        log = real(self._path)
        beside = (f"{log.name}-", f"{log.name}.presence", f"{log.name}.snapshots")
        ours = path.name == log.name or path.name.startswith(beside)
        return ours and real(path.parent) == log.parent

    def _beside(self, suffix: str) -> Path:
        return Path(f"{real(self._path)}{suffix}")
