import pytest

from cueline.stores.backend import backend_of
from cueline.testing.event_store_contract import EventStoreContract
from cueline.testing.presence_contract import PresenceContract
from cueline.testing.snapshot_contract import SnapshotContract


class TestPostgresStore(EventStoreContract):
    @pytest.fixture
    async def store(self, clock, postgres_url):
        store = backend_of(postgres_url).open(clock)
        yield store
        await store.close()


class TestPostgresPresence(PresenceContract):
    @pytest.fixture
    async def board(self, clock, postgres_url):
        board = backend_of(postgres_url).open_presence(clock)
        yield board
        await board.close()


class TestPostgresSnapshots(SnapshotContract):
    @pytest.fixture
    async def store(self, postgres_url):
        store = backend_of(postgres_url).open_snapshots()
        yield store
        await store.close()
