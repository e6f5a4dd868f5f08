"""A log that is there already."""

from cueline.stores.sqlite import SqliteStore
from cueline.testing.event_store_example import SetClock, begin


async def make(path):
    """Make a log with three events, and return its id."""
    store = SqliteStore.open(path, SetClock())
    await begin(store, events=3)
    await store.close()
    return store.log_id
