import pytest

from cueline.events.store import EventStore
from cueline.stores.memory import MemoryStore
from cueline.stores.sqlite import SqliteStore
from cueline.stores.sqlite_library import sqlite_library
from cueline.testing.event_store_contract import EventStoreContract


class TestMemoryStore(EventStoreContract):
    @pytest.fixture
    def store(self, clock):
        return MemoryStore(clock)

    async def empty(self, store: EventStore, stream: str, version: int):
        events = store._tables.streams[stream].events
        emptied = events[version - 1]._replace(payload=None, salt=None)
        events[version - 1] = store._tables.log[emptied.position - 1] = emptied


class TestSqliteStore(EventStoreContract):
    @pytest.fixture
    async def store(self, clock, tmp_path):
        store = SqliteStore.open(tmp_path / "log.db", clock)
        yield store
        await store.close()

    async def empty(self, store: EventStore, stream: str, version: int):
        db = sqlite_library().connect(store.path, isolation_level=None)
        db.execute(
            "UPDATE events SET payload = NULL, salt = NULL WHERE version = ?"
            " AND stream = (SELECT id FROM streams WHERE name = ?)",
            (version, stream),
        )
        db.close()
