"""Where the log lives, and the board of who lives."""

from cueline.stores.memory import MemoryStore
from cueline.stores.presence import MemoryPresence, SqlitePresence
from cueline.stores.sqlite import SqliteStore

__all__ = ["MemoryPresence", "MemoryStore", "SqlitePresence", "SqliteStore"]
