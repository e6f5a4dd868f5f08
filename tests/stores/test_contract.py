import tempfile
from pathlib import Path

import pytest

from cueline.events.store import EventStore
from cueline.stores.memory import MemoryStore
from cueline.stores.sqlite import SqliteStore
from cueline.testing.event_store_contract import EventStoreContract
from tests.stores.quick import QUICK
from tests.stores.sqlite_contract import SqliteContract


class TestMemoryStore(EventStoreContract):
    @pytest.fixture
    def store(self, clock):
        return MemoryStore(clock)

    async def empty(self, store: EventStore, stream: str, version: int):
        events = store._tables.streams[stream].events
        emptied = events[version - 1]._replace(payload=None, salt=None)
        events[version - 1] = store._tables.log[emptied.position - 1] = emptied


class TestSqliteStore(SqliteContract):
    @pytest.fixture
    async def store(self, clock):
        with tempfile.TemporaryDirectory(dir=QUICK) as folder:
            store = SqliteStore.open(Path(folder, "log.db"), clock)
            yield store
            await store.close()
