"""What the log keeps beside its events, checked against them."""

import pytest

from cueline.clock import SystemClock
from cueline.errors import CorruptEventError
from cueline.stores.sqlite import SqliteStore
from cueline.testing.event_store_example import INBOX, OTHER, SESSION, begin
from tests.damage import change


@pytest.fixture
async def store(tmp_path):
    store = SqliteStore.open(tmp_path / "log.db", SystemClock())
    await begin(store, INBOX)
    await begin(store, SESSION)
    await store.acquire(SESSION, "host-a", 0)
    await store.acquire(OTHER, "host-a", 0)
    yield store
    await store.close()


@pytest.mark.parametrize(
    ("sql", "told"),
    [
        ("UPDATE streams SET head_hash = zeroblob(32)", "is not the hash of this event"),
        ("DELETE FROM events", "its last event is 0, 1 were appended"),
        ("UPDATE streams SET owner = NULL", "the epoch of its stream is 1, and its owner is None"),
        ("UPDATE events SET epoch = 7", "the epoch of its stream is 1, and this event's is 7"),
        ("UPDATE appends SET count = 2", "no append with a key begins, or ends, where its row"),
        ("DELETE FROM appends", "the key of its append is missing"),
    ],
)
async def test_what_does_not_fit_the_events_is_told(store, sql, told):
    change(store.path, sql)

    assert any(told in fault.reason for fault in await store.faults())


@pytest.mark.parametrize(
    "sql", ["UPDATE streams SET head_hash = zeroblob(32)", "DELETE FROM events"]
)
async def test_a_stream_whose_head_does_not_fit_is_not_acquired(store, sql):
    change(store.path, sql)

    with pytest.raises(CorruptEventError, match=f"^{SESSION}@1"):
        await store.acquire(SESSION, "host-b", 1)

    assert (1, "host-a") == ((await store.head(SESSION)).epoch, (await store.head(SESSION)).owner)
