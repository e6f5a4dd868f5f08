"""Where logs are kept: one backend by the scheme of a log's URL.

`backend.backend_of` gives the `LogBackend` of a URL: what belongs to one log. To write
another backend:

1. Fill the port of events, `cueline.events.store.EventStore`. Subclass
   `cueline.testing.event_store_contract.EventStoreContract`, give it a `store` fixture
   and `empty`, and every rule of the port is tested.
2. Fill `PresenceBoard`, and subclass `cueline.testing.presence_contract.PresenceContract`.
3. Fill `backend.LogBackend`, and name its class in `backend.BACKENDS`.

Nothing outside this room knows what a log is kept in.
"""

from cueline.stores.memory import MemoryStore
from cueline.stores.presence import MemoryPresence, SqlitePresence
from cueline.stores.snapshots import MemorySnapshots, SqliteSnapshots
from cueline.stores.sqlite import SqliteStore

__all__ = [
    "MemoryPresence",
    "MemorySnapshots",
    "MemoryStore",
    "SqlitePresence",
    "SqliteSnapshots",
    "SqliteStore",
]
