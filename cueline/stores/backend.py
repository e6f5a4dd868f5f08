"""What a log's URL stands for: one backend by scheme gives all that belongs to a log."""

from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Literal, Protocol, cast

from cueline.clock import Clock
from cueline.errors import ConfigError
from cueline.events.log_url import LogName, LogUrl
from cueline.events.snapshot import SnapshotStore
from cueline.events.store import EventStore, PresenceBoard
from cueline.suggestion import closest, known_instead

if TYPE_CHECKING:
    from cueline.projections.views import Views

BACKENDS = {
    "sqlite": "cueline.stores.sqlite_backend:SqliteBackend",
    "memory": "cueline.stores.memory_backend:MemoryBackend",
}
"""By scheme: the module and class, which is called with the log's URL."""


class LogBackend(Protocol):
    """One log, and what is kept beside it. It holds nothing open by itself."""

    @property
    def url(self) -> LogUrl:
        """What the log is called."""
        ...

    @property
    def writer_place(self) -> Literal["process", "machine"] | None:
        """Where whoever writes has to run: in this process, on this machine; None: anywhere."""
        ...

    def exists(self) -> bool:
        """Whether there is such a log."""
        ...

    def check(self, *, shared: bool = False) -> None:
        """Refuse, before anything is made, what can be no log, or none that processes *share*.

        Raises:
            LogUnavailableError: name another; the message says why.
        """
        ...

    def open(
        self, clock: Clock, *, must_exist: bool = False, read_only: bool = False
    ) -> EventStore:
        """Open the log; make it, unless it *must_exist* or is *read_only*.

        Raises:
            LogUnavailableError: it cannot be used; the message says what to do.
            LogFormatError: another format wrote it; upgrade what the message names.
        """
        ...

    def open_presence(self, clock: Clock) -> PresenceBoard:
        """Open the board of who lives; make it if it is not there.

        Raises:
            LogUnavailableError: it cannot be written; mend what the message says.
        """
        ...

    def open_snapshots(self) -> SnapshotStore:
        """Return the snapshots of the log's sessions, whatever there is of them."""
        ...

    def open_views(self) -> "Views":
        """Open the read models; make them if they are not there.

        Raises:
            LogUnavailableError: they cannot be written; mend what the message says.
        """
        ...

    def read_up(self) -> str | None:
        """Return what `write_up` kept; None where that is nothing, or cannot be read."""
        ...

    def write_up(self, text: str) -> None:
        """Keep, whole or not at all, what the running `cueline up` says of itself."""
        ...

    def remove_up(self) -> None:
        """Forget what `write_up` kept."""
        ...

    def up_output(self) -> Path:
        """Return the file to which a detached `cueline up` prints; its folder is made."""
        ...

    def files(self) -> Sequence[Path]:
        """Return the file that the log is in, by each name that leads to it; none without one."""
        ...

    def owns(self, path: Path) -> bool:
        """Whether the file at *path* is the log's, or one that is kept beside it."""
        ...


def backend_of(log: LogName) -> LogBackend:
    """Return what the URL or path *log* stands for; nothing is opened or made.

    Raises:
        ConfigError: no backend knows its scheme; the message names those that are known.
    """
    url = LogUrl.of(log)
    if url.scheme not in BACKENDS:
        meant = next(iter(closest(url.scheme, BACKENDS)), None)
        known = known_instead(url.scheme, ["a path", *BACKENDS], meant=meant)
        raise ConfigError(str(url), f"no kind of log has the scheme {url.scheme!r}{known}")
    module, _, name = BACKENDS[url.scheme].partition(":")
    return cast("LogBackend", getattr(import_module(module), name)(url))
