"""The contract, as far as every store on SQLite fulfils it alike."""

from cueline.stores.sqlite_library import sqlite_library
from cueline.testing.event_store_contract import EventStoreContract


class SqliteContract(EventStoreContract):
    """See `EventStoreContract`; the store has a file."""

    async def empty(self, store, stream, version):
        db = sqlite_library().connect(store.path, isolation_level=None)
        db.execute(
            "UPDATE events SET payload = NULL, salt = NULL WHERE version = ?"
            " AND stream = (SELECT id FROM streams WHERE name = ?)",
            (version, stream),
        )
        db.close()
