"""The backend of logs in PostgreSQL, with the data beside them."""

import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Any, Final

import psycopg

from cueline.clock import Clock
from cueline.errors import LogUnavailableError
from cueline.events.log_url import LogUrl
from cueline.files import make_folder
from cueline.stores.postgres.address import Address, address_of
from cueline.stores.postgres.connections import Row, connect_for_commands, connected
from cueline.stores.postgres.migration import migrate
from cueline.stores.postgres.presence_snapshots import PostgresPresence, PostgresSnapshots
from cueline.stores.postgres.sql import escaped_values, marked, translating, unescaped_row
from cueline.stores.postgres.store import PostgresStore, find_log

_MOMENT = b"SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY"
_LOCK = b"SELECT pg_advisory_xact_lock((4243::bigint << 32) + 'events'::regclass::oid::bigint)"
_CONTINUE = b"""
SELECT setval(pg_get_serial_sequence('streams', 'id'), max(id)) FROM streams HAVING count(*) > 0
"""


class PostgresRows:
    """See `LogRows`; writing needs the rights of the tables' owner."""

    def __init__(self, address: Address) -> None:
        self.name = address.name
        self._address = address
        with translating(self._address):
            self._db: psycopg.Connection[Row] = connect_for_commands(address)

    @contextmanager
    def one_moment(self) -> Iterator[None]:
        with translating(self._address), self._db.transaction():
            self._db.execute(_MOMENT)
            yield

    @contextmanager
    def changing(self) -> Iterator[None]:
        with translating(self._address), self._db.transaction():
            self._db.execute(_LOCK)
            yield

    def ask(self, statement: str, values: Sequence[object] = ()) -> list[tuple[Any, ...]]:
        with translating(self._address):
            cursor = self._db.execute(marked(statement), escaped_values(values), binary=True)
            return list(map(unescaped_row, cursor))

    def change(self, statement: str, rows: Iterable[Sequence[object]]) -> None:
        with translating(self._address), self._db.cursor() as cursor:
            cursor.executemany(marked(statement), map(escaped_values, rows))

    def finish(self) -> None:
        with translating(self._address):
            self._db.execute(_CONTINUE)

    def close(self) -> None:
        self._db.close()


if TYPE_CHECKING:
    from cueline.projections.views import Views

_RIGHTS = b"""
SELECT split_part(current_setting('server_version'), ' ', 1), current_user,
    pg_has_role(c.relowner, 'USAGE'), has_function_privilege(p.oid, 'EXECUTE')
FROM pg_class c JOIN pg_proc p ON p.pronamespace = c.relnamespace
WHERE c.oid = to_regclass('events') AND p.proname = 'append'
"""
_UP = "SELECT description FROM up"
_WRITE_UP = """
INSERT INTO up (id, description) VALUES (1, %s)
ON CONFLICT (id) DO UPDATE SET description = excluded.description
"""
_REMOVE_UP = "DELETE FROM up"


class PostgresBackend:
    """See `LogBackend`."""

    writer_place: Final = None

    def __init__(self, url: LogUrl) -> None:
        self.url = url
        self._address = address_of(url)
        self._snapshots: PostgresSnapshots | None = None

    def exists(self) -> bool:
        return find_log(self._address) is not None

    def found(self) -> None:
        """See `LogBackend.found`; None, because the log has no file."""

    def check(self, *, shared: bool = False) -> None:  # noqa: ARG002 - it can always be shared
        self._log_id()

    def open(
        self,
        clock: Clock,
        *,
        must_exist: bool = False,  # noqa: ARG002 - it is made by command only
        read_only: bool = False,
    ) -> PostgresStore:
        log_id = self._log_id()
        self._snapshots = PostgresSnapshots(self._address)
        return PostgresStore(
            self._address, log_id, clock, read_only=read_only, snapshots=self._snapshots
        )

    def migrate(self, writers: Sequence[str] = (), readers: Sequence[str] = ()) -> bool:
        return migrate(self._address, writers, readers)

    def open_rows(self, *, to_write: bool = False) -> PostgresRows:
        if to_write:
            self.migrate()
        else:
            self._log_id()
        return PostgresRows(self._address)

    def describe(self) -> str:
        with connected(self._address) as db:
            row = db.execute(_RIGHTS).fetchone()
        assert row is not None
        version, role, owns, appends = row
        may = "owns the tables" if owns else "appends only" if appends else "reads only"
        return f"PostgreSQL {version}, where the role {role} {may}"

    def open_presence(self, clock: Clock) -> PostgresPresence:
        return PostgresPresence(self._address, clock)

    def open_snapshots(self) -> PostgresSnapshots:
        """See `LogBackend.open_snapshots`; if a store is open, returns its snapshots."""
        return self._snapshots or PostgresSnapshots(self._address)

    def open_views(self) -> "Views":
        """See `LogBackend.open_views`; a role that may not write uses a file on this machine."""
        from cueline.projections.views import Views  # noqa: PLC0415 - slow to import
        from cueline.stores.postgres.views import PostgresViews  # noqa: PLC0415 - likewise

        shared = PostgresViews(self._address)
        if shared.may_write:
            return shared
        shared.close()
        return Views(self._own("XDG_CACHE_HOME", ".cache") / f"{self._log_id()}-views.db")

    def read_up(self) -> str | None:
        try:
            with connected(self._address) as db:
                row = db.execute(_UP.encode()).fetchone()
        except LogUnavailableError:
            return None
        return None if row is None else str(row[0])

    def write_up(self, text: str) -> None:
        with connected(self._address) as db:
            db.execute(_WRITE_UP.encode(), (text,))

    def remove_up(self) -> None:
        with connected(self._address) as db:
            db.execute(_REMOVE_UP.encode())

    def up_output(self) -> Path:
        return self._own("XDG_STATE_HOME", ".local/state") / f"{self._log_id()}-up.log"

    def scrub(self) -> None:
        """See `LogBackend.scrub`; a server keeps emptied content until its own `VACUUM`."""

    def files(self) -> Sequence[Path]:
        return ()

    def owns(self, path: Path) -> bool:  # noqa: ARG002 - see `LogBackend`
        return False

    def _log_id(self) -> str:
        log_id = find_log(self._address)
        if log_id is None:
            makes = f"cueline log migrate --log {quote(self._address.name)}"
            reason = f"there is no such log; `{makes}` makes one"
            raise LogUnavailableError(self._address.name, reason)
        return log_id

    def _own(self, variable: str, folder: str) -> Path:
        """Return the folder of this user and machine; it is created."""
        base = Path(os.environ.get(variable) or Path.home() / folder) / "cueline"
        try:
            make_folder(base)
        except OSError as error:
            raise LogUnavailableError(str(base), error.strerror or "it cannot be made") from error
        return base
