"""The backends of logs by URL scheme: cueline's own, and those of installed packages."""

from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from functools import cache
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal, Protocol, cast

from cueline.clock import Clock
from cueline.errors import ConfigError
from cueline.errors.suggestion import closest, known_instead
from cueline.events.log_url import LogName, LogUrl
from cueline.events.snapshot import SnapshotStore
from cueline.events.store import EventStore, PresenceBoard
from cueline.stores.log_copy import LogRows

if TYPE_CHECKING:
    from cueline.projections.views import Views

GROUP: Final = "cueline.stores"
"""The group of entry points by which a package adds a backend; the name is the scheme."""
BACKENDS = {
    scheme: EntryPoint(scheme, f"cueline.{value}", GROUP)
    for scheme, value in (
        ("sqlite", "stores.sqlite_backend:SqliteBackend"),
        ("memory", "stores.memory_backend:MemoryBackend"),
        ("postgresql", "stores.postgres.backend:PostgresBackend"),
        ("http", "gateway.remote_log:RemoteBackend"),
        ("https", "gateway.remote_log:RemoteBackend"),
    )
}
"""Cueline's own backends by scheme. The class is called with the log's URL."""
EXTRAS = {"psycopg": "postgres"}
"""The extra of cueline that installs a package which a backend imports."""


class LogBackend(Protocol):
    """One log, and the data stored beside it. A backend itself keeps nothing open.

    If the log cannot be used, methods raise `LogUnavailableError`; if another format wrote
    it, `LogFormatError`. The messages say what to do.
    """

    @property
    def url(self) -> LogUrl:
        """The URL of the log."""

    @property
    def writer_place(self) -> Literal["process", "machine"] | None:
        """The place of the writer: this process, this machine, or (None) any machine."""

    def exists(self) -> bool:
        """Whether the log exists."""

    def found(self) -> tuple[Path, str] | None:
        """Return the path of the log, with links, and its id, if a folder contains the log.

        A copied folder can contain such a log. The id is empty if only other files of the log, or
        links, were found. Returns None if the log has no file.
        """

    def check(self, *, shared: bool = False) -> None:
        """Raise if the URL cannot have a log; with *shared*, a log that several processes share."""

    def open(
        self, clock: Clock, *, must_exist: bool = False, read_only: bool = False
    ) -> EventStore:
        """Open the log; create it, unless it *must_exist* or is *read_only*."""

    def migrate(self, writers: Sequence[str] = (), readers: Sequence[str] = ()) -> bool:
        """Create the log, or upgrade it to this format; return whether anything was done.

        The roles *writers* may then append, and the roles *readers* read.

        Raises:
            ConfigError: the log has no roles.
        """

    def open_rows(self, *, to_write: bool = False) -> LogRows:
        """Open the tables of the log for a copy; with *to_write*, create missing tables."""

    def describe(self) -> str | None:
        """Return the server of the log, and the rights of this role there; None for a file."""

    def open_presence(self, clock: Clock) -> PresenceBoard:
        """Open the presence board; create it if it is missing."""

    def open_snapshots(self) -> SnapshotStore:
        """Return the store of the snapshots of the log's sessions."""

    def open_views(self) -> "Views":
        """Open the read models; create them if they are missing."""

    def read_up(self) -> str | None:
        """Return the text of `write_up`; None if it is missing or unreadable."""

    def write_up(self, text: str) -> None:
        """Store a description of the running `cueline up`, atomically."""

    def remove_up(self) -> None:
        """Delete the text of `write_up`."""

    def up_output(self) -> Path:
        """Return the output file of a detached `cueline up`; its folder is created."""

    def scrub(self) -> None:
        """Write the files of the log anew, without what free pages have of emptied content.

        No process may use the log: it would find its file cut short.

        Raises:
            LogUnavailableError: they cannot be written, or another process uses them.
        """

    def files(self) -> Sequence[Path]:
        """Return every path that leads to the file of the log; empty if the log has no file."""

    def owns(self, path: Path) -> bool:
        """Whether the file at *path* belongs to the log, or is stored beside the log."""


class LogServer(Protocol):
    """The server of a log: carries out the requests of a client that cannot open the log.

    The backend of such a log has it as its attribute `server`.
    """

    async def greet(self) -> None:
        """Check once that the server can be used.

        Raises:
            LogUnavailableError: it cannot be reached, refuses the token, or is another server.
        """

    async def call(self, name: str, arguments: Mapping[str, Any]) -> Any:
        """Return the JSON of the result of a client's method, or of the wish of this type.

        Raises:
            CuelineError: the error of the method at the server.
            RejectedError: the server has no such method, or does not take an argument.
            LogUnavailableError: the server cannot be used; nothing was recorded.
            UnknownOutcomeError: the connection broke; the request may be recorded.
        """

    def live_text(self, stream: str) -> AsyncGenerator[str]:
        """Yield the pieces of the replies of a session, each as JSON, without end."""


_loaded: dict[str, Callable[[LogUrl], LogBackend]] = {}
"""The classes of the backends in use, by scheme."""


@cache
def _installed() -> dict[str, EntryPoint]:
    """Return the backends of installed packages; slow, so called only for an unknown scheme."""
    return {entry.name: entry for entry in entry_points(group=GROUP)}


def backend_of(log: LogName) -> LogBackend:
    """Return the backend of the URL or path *log*; nothing is opened or created.

    Raises:
        ConfigError: the scheme is unknown, or the URL invalid, or a package is missing or
            broken; the message says what to do.
    """
    url = LogUrl.of(log)
    made = _loaded.get(url.scheme)
    if made is None:
        made = _loaded[url.scheme] = _load(url)
    return made(url)


def _entry_of(url: LogUrl) -> EntryPoint:
    entry = BACKENDS.get(url.scheme) or _installed().get(url.scheme)
    if entry is None:
        schemes = [*BACKENDS, *sorted(_installed().keys() - BACKENDS)]
        meant = next(iter(closest(url.scheme, schemes)), None)
        known = known_instead(url.scheme, ["a path", *schemes], meant=meant)
        more = f"; a package can add one (entry point group {GROUP!r})"
        raise ConfigError(str(url), f"no kind of log has the scheme {url.scheme!r}{known}{more}")
    return entry


def _load(url: LogUrl) -> Callable[[LogUrl], LogBackend]:
    entry = _entry_of(url)
    try:
        return cast("Callable[[LogUrl], LogBackend]", entry.load())
    except Exception as error:
        missing = error.name if isinstance(error, ModuleNotFoundError) else None
        if missing in EXTRAS:
            why = f"it needs {missing}: `pip install 'cueline[{EXTRAS[missing]}]'` installs it"
        elif url.scheme in BACKENDS:
            raise
        else:
            broken = f"{type(error).__name__}: {error}"
            why = f"the scheme {url.scheme!r} cannot be loaded from {entry.value}: {broken}"
        raise ConfigError(str(url), why) from error
