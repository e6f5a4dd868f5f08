"""A store for cueline: the log and its other files in one folder.

`folder:///srv/logs/one` is the folder `/srv/logs/one`. The files are SQLite files, made by
cueline's own classes; replace each by yours.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Literal, NoReturn

from cueline.clock import Clock, SystemClock
from cueline.errors import ConfigError, LogUnavailableError
from cueline.events.log_url import LogUrl
from cueline.projections.views import Views
from cueline.stores import SqlitePresence, SqliteSnapshots, SqliteStore


class FolderBackend:
    """All that belongs to the log of one URL. Making this object opens and creates nothing."""

    writer_place: Literal["machine"] = "machine"

    def __init__(self, url: LogUrl) -> None:
        """Check the URL.

        Raises:
            ConfigError: it has no absolute path.
        """
        if not url.rest.startswith("///"):
            raise ConfigError(str(url), "write `folder://` and an absolute path")
        self.url = url
        self._folder = Path(url.rest.removeprefix("//"))
        self._log = self._folder / "log.db"

    def exists(self) -> bool:
        """Whether the log exists."""
        return self._log.exists()

    def found(self) -> None:
        """Return None: the URL is absolute, so no folder that was copied brings this log."""

    def check(self, *, shared: bool = False) -> None:
        """Return: all processes of the machine can share the log."""

    def open(
        self, clock: Clock, *, must_exist: bool = False, read_only: bool = False
    ) -> SqliteStore:
        """Open the log; create it, unless it *must_exist* or is *read_only*."""
        return SqliteStore.open(
            self._log,
            clock,
            must_exist=must_exist,
            read_only=read_only,
            snapshots=self.open_snapshots(),
        )

    def open_presence(self, clock: Clock) -> SqlitePresence:
        """Open the presence board; create it if it is missing."""
        return SqlitePresence(self._folder / "presence.db", clock)

    def open_snapshots(self) -> SqliteSnapshots:
        """Return the store of snapshots."""
        return SqliteSnapshots(self._folder / "snapshots.db")

    def open_views(self) -> Views:
        """Open the read models; create them if they are missing."""
        return Views(self._folder / "views.db")

    def migrate(self, writers: Sequence[str] = (), readers: Sequence[str] = ()) -> bool:
        """Create the log; return False if it exists. Files have no roles."""
        if writers or readers:
            raise ConfigError(str(self.url), "a folder has no roles")
        if self.exists():
            return False
        self.open(SystemClock())
        return True

    def open_rows(self, *, to_write: bool = False) -> NoReturn:  # noqa: ARG002 - as above
        """Refuse `cueline log copy`: a copy of the folder is a copy of the log."""
        raise LogUnavailableError(str(self.url), "copy the folder instead")

    def describe(self) -> None:
        """Return None: there is no server."""

    def read_up(self) -> str | None:
        """Return the text of `write_up`; None if there is none."""
        record = self._folder / "up.json"
        return record.read_text() if record.exists() else None

    def write_up(self, text: str) -> None:
        """Replace the record of the running `cueline up` in one step."""
        draft = self._folder / "up.json.new"
        draft.write_text(text)
        draft.replace(self._folder / "up.json")

    def remove_up(self) -> None:
        """Delete the text of `write_up`."""
        (self._folder / "up.json").unlink(missing_ok=True)

    def up_output(self) -> Path:
        """Return the output file of a detached `cueline up`."""
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        return self._folder / "up.log"

    def files(self) -> Sequence[Path]:
        """Return the log's file; cueline checks that no file tool of an agent reaches it."""
        return (self._log,)

    def owns(self, path: Path) -> bool:
        """Whether the file at *path* is in the folder."""
        return path.resolve().is_relative_to(self._folder.resolve())
