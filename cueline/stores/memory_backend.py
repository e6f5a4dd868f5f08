"""The backend of logs in the memory of this process."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Literal, NoReturn

from cueline.clock import Clock
from cueline.errors import LogUnavailableError
from cueline.events.log_url import LogUrl
from cueline.stores.memory import MemoryStore, MemoryTables
from cueline.stores.presence import MemoryPresence
from cueline.stores.snapshots import MemorySnapshots

if TYPE_CHECKING:
    from cueline.projections.views import Views

_OUT_OF_REACH = "no other process reaches this one's memory; run it inline, or name a file"
_GONE = "nothing of a log in memory outlives its process, so name a file: `--log cueline.db`"


class MemoryLog:
    """The data that all stores of one log share."""

    def __init__(self) -> None:
        self.tables = MemoryTables()
        self.board: MemoryPresence | None = None
        self.snapshots = MemorySnapshots()


_NAMED: dict[str, MemoryLog] = {}


class MemoryBackend:
    """See `LogBackend`. Each `memory:` is a new log; `memory:NAME` is shared."""

    writer_place: Literal["process"] = "process"

    def __init__(self, url: LogUrl) -> None:
        self.url = url
        self._log = _NAMED.get(url.rest)

    def exists(self) -> bool:
        return self._log is not None

    def found(self) -> None:
        """See `LogBackend.found`; None, because the log has no file."""

    def check(self, *, shared: bool = False) -> None:
        if shared:
            raise self._unavailable(_OUT_OF_REACH)

    def open(
        self, clock: Clock, *, must_exist: bool = False, read_only: bool = False
    ) -> MemoryStore:
        if self._log is None and (must_exist or read_only):
            raise self._unavailable(f"there is no such log; {_GONE}")
        made = self._made()
        return MemoryStore(clock, made.tables, made.snapshots)

    def migrate(self, writers: Sequence[str] = (), readers: Sequence[str] = ()) -> bool:  # noqa: ARG002 - see `LogBackend`
        raise self._unavailable(_GONE)

    def open_rows(self, *, to_write: bool = False) -> NoReturn:  # noqa: ARG002 - see `LogBackend`
        raise self._unavailable(_GONE)

    def describe(self) -> None:
        """See `LogBackend.describe`."""

    def open_presence(self, clock: Clock) -> MemoryPresence:
        made = self._made()
        if made.board is None:
            made.board = MemoryPresence(clock)
        return made.board

    def open_snapshots(self) -> MemorySnapshots:
        return self._made().snapshots

    def open_views(self) -> "Views":
        """See `LogBackend.open_views`; the read models are filled from the log at each call."""
        from cueline.projections.views import Views  # noqa: PLC0415 - slow to import

        return Views(":memory:")

    def read_up(self) -> None:
        """See `LogBackend.read_up`: no other process can use this log."""

    def write_up(self, text: str) -> None:  # noqa: ARG002 - see `LogBackend`
        raise self._unavailable(_OUT_OF_REACH)

    def remove_up(self) -> None:
        """See `LogBackend.remove_up`."""

    def up_output(self) -> Path:
        raise self._unavailable(_OUT_OF_REACH)

    def scrub(self) -> None:
        """See `LogBackend.scrub`; there is no file here."""

    def files(self) -> Sequence[Path]:
        return ()

    def owns(self, path: Path) -> bool:  # noqa: ARG002 - see `LogBackend`
        return False

    def _made(self) -> MemoryLog:
        if self._log is None:
            self._log = MemoryLog()
            if self.url.rest:
                self._log = _NAMED.setdefault(self.url.rest, self._log)
        return self._log

    def _unavailable(self, reason: str) -> LogUnavailableError:
        return LogUnavailableError(str(self.url).removesuffix(":"), reason)
