"""The stores of logs: one backend for each scheme of a log's URL.

`backend.backend_of` returns the `LogBackend` of a URL. To write another backend:

1. Implement `cueline.events.store.EventStore`. Subclass
   `cueline.testing.event_store_contract.EventStoreContract`, with the fixture `store`;
   it tests every rule of the port.
2. Implement `PresenceBoard`; subclass `cueline.testing.presence_contract.PresenceContract`.
3. Implement `backend.LogBackend`, and name its class in an entry point of the group
   `cueline.stores`, under the scheme. `docs/guides/stores.md` has an example.

No code outside this package depends on the place of a log.
"""

from cueline.stores.memory import MemoryStore
from cueline.stores.presence import MemoryPresence, SqlitePresence
from cueline.stores.snapshots import MemorySnapshots, SqliteSnapshots
from cueline.stores.sqlite import SqliteStore
