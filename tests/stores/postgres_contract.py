"""The contract for a log in PostgreSQL."""

import psycopg

from cueline.testing.event_store_contract import EventStoreContract


class PostgresContract(EventStoreContract):
    """See `EventStoreContract`; the store has a place."""

    async def empty(self, store, stream, version):
        with psycopg.connect(store.place.conninfo) as db:
            db.execute(f"SET search_path = {store.place.schema}")
            db.execute(
                "UPDATE events SET payload = NULL, salt = NULL WHERE version = %s"
                " AND stream = (SELECT id FROM streams WHERE name = %s)",
                (version, stream),
            )
