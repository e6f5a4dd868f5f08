"""Where the log lives."""

from cueline.stores.memory import MemoryStore
from cueline.stores.sqlite import SqliteStore

__all__ = ["MemoryStore", "SqliteStore"]
