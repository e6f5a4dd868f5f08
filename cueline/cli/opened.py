"""How a command opens the log: to look, or to take part.

Looking needs neither Ray nor an agent, and does not change the log.
"""

import asyncio
from collections.abc import AsyncIterator, Coroutine
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from cueline.clock import SystemClock
from cueline.errors import LogUnavailableError

if TYPE_CHECKING:
    from cueline.events.store import EventStore, PresenceBoard
    from cueline.projections.views import Views

T = TypeVar("T")


def run(work: Coroutine[object, object, T]) -> T:
    """Do *work* in a loop of its own."""
    return asyncio.run(work)


@asynccontextmanager
async def looking(path: Path) -> AsyncIterator["EventStore"]:
    """Open an existing log for reading only.

    Raises:
        LogUnavailableError: there is none, or it cannot be read.
        LogFormatError: another format wrote it.
    """
    from cueline.stores.sqlite import SqliteStore

    store = SqliteStore.open(path, SystemClock(), must_exist=True, read_only=True)
    try:
        yield store
    finally:
        await store.close()


@asynccontextmanager
async def views_of(path: Path, store: "EventStore") -> AsyncIterator["Views"]:
    """Open the read models beside the log, as far as the log is.

    Raises:
        LogUnavailableError: their file cannot be written; mend disk or permissions.
    """
    from cueline.projections.views import Views, views_path

    views = Views(views_path(path))
    try:
        await views.catch_up(store)
        yield views
    finally:
        views.close()


@asynccontextmanager
async def board_of(path: Path) -> AsyncIterator["PresenceBoard"]:
    """Open the board of who lives; an empty one where its file cannot be used."""
    from cueline.stores.presence import MemoryPresence, SqlitePresence

    clock = SystemClock()
    try:
        board = SqlitePresence.open(path.with_name(f"{path.name}.presence"), clock)
    except LogUnavailableError:
        yield MemoryPresence(clock)
        return
    try:
        yield board
    finally:
        await board.close()
