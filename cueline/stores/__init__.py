"""Where the log lives, the board of who lives, and the snapshots of its sessions."""

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
