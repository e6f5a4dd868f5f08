"""How a command opens the log: to look, or to take part.

Looking needs neither Ray nor an agent, and does not change the log.
"""

from collections.abc import AsyncIterator, Coroutine
from contextlib import asynccontextmanager, closing
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import typer

from cueline.console.text import visible
from cueline.errors import CorruptEventError, CuelineError, LogUnavailableError
from cueline.events.log_url import LogName, LogUrl

if TYPE_CHECKING:
    from cueline.cli.failure import Exit
    from cueline.client.history import History
    from cueline.client.reader import Reader
    from cueline.client.reading import Page
    from cueline.events.store import EventStore, PresenceBoard
    from cueline.projections.views import Views

T = TypeVar("T")
TELL_SECONDS = 3.0
"""Who waits longer for what is new in the log is told why."""
_LONG = "reading what is new in the log; a long one takes minutes …"


def run(work: Coroutine[object, object, T]) -> T:
    """Do *work* in a loop of its own."""
    from cueline import loop

    return loop.run(work)


@asynccontextmanager
async def reader(path: LogName, *, must_exist: bool = True) -> AsyncIterator["Reader"]:
    """Open the log at *path* to be asked; see `open_reader`."""
    from cueline.client.reader import open_reader

    async with open_reader(path, must_exist=must_exist, notice=_notice) as opened:
        yield opened


async def history(path: LogName, name: str, **how: Any) -> "History":
    """Return the past of the session that *name* stands for; see `Reader.history`."""
    async with reader(path) as opened:
        return await opened.history(name, **how)


def rows(page: "Page[Any]") -> Any:
    """Return the rows of a page in their JSON form."""
    from cueline.client.document import document

    return document(page.rows)


def end_of(page: "Page[Any]") -> None:
    """Say on stderr if a page is not all there is: an audit must not seem to be whole.

    Raises:
        CorruptEventError: the log is damaged, and the page tells what is before that.
    """
    if page.more:
        typer.echo("there are more; --limit shows them", err=True)
    if page.damage is not None:
        raise page.damage


def exit_of_damage(damage: CuelineError | None) -> "Exit":
    """Return the exit code of a command that read as far as it could, and say what it could not."""
    from cueline.cli.failure import Exit, tell

    if damage is None:
        return Exit.DONE
    tell(damage)
    return Exit.FAILED


def _notice(text: str) -> None:
    typer.echo(visible(text), err=True)


@asynccontextmanager
async def looking(path: LogName) -> AsyncIterator["EventStore"]:
    """Open an existing log for reading only.

    Raises:
        LogUnavailableError: there is none, or it cannot be read.
        LogFormatError: another format wrote it.
    """
    from cueline.clock import SystemClock
    from cueline.stores.backend import backend_of

    store = backend_of(path).open(SystemClock(), read_only=True)
    try:
        yield store
    finally:
        await store.close()


@asynccontextmanager
async def views_of(path: LogUrl, store: "EventStore") -> AsyncIterator["Views"]:
    """Open the read models beside the log, or in memory where they cannot be written.

    Raises:
        LogUnavailableError: the log itself cannot be read.
        CorruptEventError: the log is damaged; restore it. It is raised on the way out:
            what is before the damage can be looked at.
    """
    from cueline.projections.views import Views
    from cueline.stores.backend import backend_of

    try:
        views, damage = await _caught_up(backend_of(path).open_views(), store)
    except LogUnavailableError:
        # A backup, or a log of somebody else's, can be looked at all the same.
        views, damage = await _caught_up(Views(":memory:"), store)
    with closing(views):
        yield views
    if damage is not None:
        raise damage


async def _caught_up(
    views: "Views", store: "EventStore"
) -> tuple["Views", CorruptEventError | None]:
    """Fill the read models; return them, and what kept them from being filled to the end."""
    import asyncio

    telling = asyncio.get_running_loop().call_later(
        TELL_SECONDS, partial(typer.echo, _LONG, err=True)
    )
    try:
        await views.catch_up(store)
    except CorruptEventError as damage:
        return views, damage
    except BaseException:
        views.close()
        raise
    finally:
        telling.cancel()
    return views, None


async def read_on(log: LogUrl) -> None:
    """Bring the read models of *log* up to date, however long that takes.

    Raises:
        LogUnavailableError: it cannot be read, or the read models not be written.
    """
    from cueline.stores.backend import backend_of

    async with looking(log) as store:
        views, _ = await _caught_up(backend_of(log).open_views(), store)
        views.close()


@asynccontextmanager
async def board_of(path: LogUrl) -> AsyncIterator["PresenceBoard"]:
    """Open the board of who lives; an empty one where its file cannot be used, and say so."""
    from cueline.clock import SystemClock
    from cueline.stores import MemoryPresence
    from cueline.stores.backend import backend_of

    clock = SystemClock()
    try:
        board: PresenceBoard = backend_of(path).open_presence(clock)
    except LogUnavailableError as error:
        _warn_of(error)
        yield MemoryPresence(clock)
        return
    try:
        yield board
    finally:
        await board.close()


def _warn_of(error: LogUnavailableError) -> None:
    """Say that who lives is not known, unless there is no board, as beside a backup."""
    if Path(error.path).exists():
        warning = f"warning: {error}; whether anybody drives a session is not known"
        typer.echo(visible(warning), err=True)
