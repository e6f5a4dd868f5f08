"""The contract suites of cueline, run against the store."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from cueline_folder import FolderBackend

from cueline.clock import Clock
from cueline.events.log_url import LogUrl
from cueline.stores import SqlitePresence, SqliteSnapshots, SqliteStore
from cueline.testing.event_store_contract import EventStoreContract
from cueline.testing.presence_contract import PresenceContract
from cueline.testing.snapshot_contract import SnapshotContract


@pytest.fixture
def backend(tmp_path: Path) -> FolderBackend:
    return FolderBackend(LogUrl.of(f"folder://{tmp_path}/log"))


class TestFolderStore(EventStoreContract):
    @pytest.fixture
    async def store(self, clock: Clock, backend: FolderBackend) -> AsyncIterator[SqliteStore]:
        store = backend.open(clock)
        yield store
        await store.close()


class TestFolderPresence(PresenceContract):
    @pytest.fixture
    async def board(self, clock: Clock, backend: FolderBackend) -> AsyncIterator[SqlitePresence]:
        board = backend.open_presence(clock)
        yield board
        await board.close()


class TestFolderSnapshots(SnapshotContract):
    @pytest.fixture
    def store(self, backend: FolderBackend) -> SqliteSnapshots:
        backend.up_output()  # makes the folder
        return backend.open_snapshots()
