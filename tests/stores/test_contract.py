import tempfile
from pathlib import Path

import pytest

from cueline.stores.memory import MemoryStore
from cueline.stores.sqlite import SqliteStore
from cueline.testing.event_store_contract import EventStoreContract
from tests.stores.quick import QUICK


class TestMemoryStore(EventStoreContract):
    @pytest.fixture
    def store(self, clock):
        return MemoryStore(clock)


class TestSqliteStore(EventStoreContract):
    @pytest.fixture
    async def store(self, clock):
        with tempfile.TemporaryDirectory(dir=QUICK) as folder:
            store = SqliteStore.open(Path(folder, "log.db"), clock)
            yield store
            await store.close()
