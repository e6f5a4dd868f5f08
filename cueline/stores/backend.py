"""Backends of logs: one class for each URL scheme opens all that belongs to a log."""

from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Literal, Protocol, cast

from cueline.clock import Clock
from cueline.errors import ConfigError
from cueline.errors.suggestion import closest, known_instead
from cueline.events.log_url import LogName, LogUrl
from cueline.events.snapshot import SnapshotStore
from cueline.events.store import EventStore, PresenceBoard
from cueline.stores.log_copy import LogRows

if TYPE_CHECKING:
    from cueline.projections.views import Views

BACKENDS = {
    "sqlite": "cueline.stores.sqlite_backend:SqliteBackend",
    "memory": "cueline.stores.memory_backend:MemoryBackend",
    "postgresql": "cueline.stores.postgres.backend:PostgresBackend",
}
"""By scheme: module and class; the class is called with the log's URL."""
EXTRAS = {"psycopg": "postgres"}
"""By package that a backend imports: the extra of cueline that installs it."""


class LogBackend(Protocol):
    """One log, and the data stored beside it. It holds nothing open by itself.

    What cannot be used raises `LogUnavailableError`; a log that another format wrote,
    `LogFormatError`. The messages say what to do.
    """

    @property
    def url(self) -> LogUrl:
        """The URL of the log."""

    @property
    def writer_place(self) -> Literal["process", "machine"] | None:
        """Where its writer has to run: in this process, on this machine, or (None) anywhere."""

    def exists(self) -> bool:
        """Whether the log exists."""

    def found(self) -> tuple[Path, str] | None:
        """Return the log's path, links as they are, and its id, if a folder may have brought it.

        The id is empty if there are only other files of it, or links. None: there is nothing.
        """

    def check(self, *, shared: bool = False) -> None:
        """Raise if there can be no such log, or none that several processes *share*."""

    def open(
        self, clock: Clock, *, must_exist: bool = False, read_only: bool = False
    ) -> EventStore:
        """Open the log; create it, unless it *must_exist* or is *read_only*."""

    def migrate(self, writers: Sequence[str] = (), readers: Sequence[str] = ()) -> bool:
        """Make the log, or bring it to this format; return whether anything was done.

        The roles *writers* may then append, and the *readers* read. It raises `ConfigError`
        if the log has no roles.
        """

    def open_rows(self, *, to_write: bool = False) -> LogRows:
        """Open the tables, to be copied; *to_write* makes them if they are missing."""

    def describe(self) -> str | None:
        """Return which server has the log, and what this role may do there; None for a file."""

    def open_presence(self, clock: Clock) -> PresenceBoard:
        """Open the presence board; create it if it is missing."""

    def open_snapshots(self) -> SnapshotStore:
        """Return the store of the snapshots of the log's sessions."""

    def open_views(self) -> "Views":
        """Open the read models; create them if they are missing."""

    def read_up(self) -> str | None:
        """Return the text of `write_up`; None if there is none, or it cannot be read."""

    def write_up(self, text: str) -> None:
        """Store a description of the running `cueline up`, atomically."""

    def remove_up(self) -> None:
        """Delete the text of `write_up`."""

    def up_output(self) -> Path:
        """Return the output file of a detached `cueline up`; its folder is created."""

    def files(self) -> Sequence[Path]:
        """Return the log's file by each name that leads to it; none without a file."""

    def owns(self, path: Path) -> bool:
        """Whether the file at *path* is the log's, or is stored beside it."""


def backend_of(log: LogName) -> LogBackend:
    """Return the backend of the URL or path *log*; nothing is opened or created.

    Raises:
        ConfigError: the scheme is unknown, or the URL invalid, or a package is missing; the
            message says what to do.
    """
    url = LogUrl.of(log)
    if url.scheme not in BACKENDS:
        meant = next(iter(closest(url.scheme, BACKENDS)), None)
        known = known_instead(url.scheme, ["a path", *BACKENDS], meant=meant)
        raise ConfigError(str(url), f"no kind of log has the scheme {url.scheme!r}{known}")
    module, _, name = BACKENDS[url.scheme].partition(":")
    try:
        backend = getattr(import_module(module), name)
    except ModuleNotFoundError as error:
        if error.name not in EXTRAS:
            raise
        wanted = f"pip install 'cueline[{EXTRAS[error.name]}]'"
        raise ConfigError(str(url), f"it needs {error.name}: `{wanted}` installs it") from error
    return cast("LogBackend", backend(url))
