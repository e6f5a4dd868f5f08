"""Opens a log for reading, and brings its read models up to date."""

import asyncio
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager, closing
from dataclasses import dataclass
from functools import partial
from sqlite3 import Connection
from typing import Generic, TypeVar, overload

from cueline.errors import (
    CorruptEventError,
    InvalidNameError,
    LogUnavailableError,
    RejectedError,
    UnknownSessionError,
)
from cueline.errors.suggestion import closest
from cueline.events.stream import session_stream, shown, sibling, tenant_of
from cueline.projections.audit import first_fault
from cueline.projections.read_model import ask
from cueline.projections.views import Views
from cueline.runtime.open_log import OpenLog

Notice = Callable[[str], None]
"""The callback for information about the log, one sentence a call."""
T = TypeVar("T")
R = TypeVar("R")

SLOW_SECONDS = 3.0
"""The time after which the user gets the reason for a slow update of the read models."""
_SLOW = "reading what is new in the log; a long one takes minutes …"
FILLING = "reading the log: "
"""The beginning of the notices about its progress; the last one has 100 %."""
_BAR = 30


def print_notice(text: str) -> None:
    """Print a notice to stderr."""
    print(text, file=sys.stderr)  # noqa: T201 - the caller gave no other place


@dataclass(frozen=True, slots=True)
class Page(Sequence[T], Generic[T]):
    """Rows, and whether they are complete."""

    rows: tuple[T, ...]
    more: bool = False
    """Whether there are further rows beyond the limit."""
    damage: CorruptEventError | None = None
    """The unreadable event; the rows have the data before it."""
    next: str | None = None
    """The cursor of the next page; None if there is none, or if all rows come at once."""

    @overload
    def __getitem__(self, index: int) -> T: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[T, ...]: ...
    def __getitem__(self, index: int | slice) -> T | tuple[T, ...]:
        """Return the row at *index*, or the rows of a slice."""
        return self.rows[index]

    def __len__(self) -> int:
        """Return the number of rows here."""
        return len(self.rows)


@dataclass(frozen=True, slots=True)
class ReadModels:
    """The read models of a log, up to damage."""

    db: Connection
    damage: CorruptEventError | None
    views: Views

    def page(
        self,
        rows: Sequence[R],
        limit: int | None = None,
        cursor_of: Callable[[R], str] | None = None,
    ) -> Page[R]:
        """Return the first *limit* of *rows*, with the cursor after the last of them."""
        more = limit is not None and len(rows) > limit
        shown_rows = tuple(rows[:limit])
        last = cursor_of(shown_rows[-1]) if more and cursor_of is not None else None
        return Page(shown_rows, more, self.damage, last)


@asynccontextmanager
async def read_models(log: OpenLog, notice: Notice = print_notice) -> AsyncIterator[ReadModels]:
    """Open the read models of *log*: beside it, or in memory if no file can be written there.

    The person of the log sees the rows of their tenant only.

    Raises:
        ForbiddenError: the person may read nothing.
        LogUnavailableError: the log itself cannot be read.
    """
    log.check_may("read")
    try:
        views, damage = await _caught_up(log, log.backend.open_views(), notice)
    except LogUnavailableError:
        # A backup, or the log of another user, can be read all the same.
        views, damage = await _caught_up(log, Views(":memory:"), notice)
    with closing(views):
        if (fault := first_fault(views.db)) is not None:
            said = f"{fault.name} could not be read ({fault.error}), so this may be incomplete"
            notice(f"warning: {said}; the log has it: use a cueline in which that is mended")
        if log.tenant is not None:
            views.keep_to(log.tenant)
        yield ReadModels(views.db, damage, views)


async def _caught_up(
    log: OpenLog, views: Views, notice: Notice
) -> tuple[Views, CorruptEventError | None]:
    """Fill the read models; return them, and the error that stopped them before the end."""
    loop = asyncio.get_running_loop()
    slow = loop.call_later(SLOW_SECONDS, partial(notice, _SLOW))
    due = loop.time() + SLOW_SECONDS

    def progress(position: int, end: int) -> None:
        nonlocal due
        if loop.time() >= due:
            due = loop.time() + (0 if position == end else SLOW_SECONDS / 10)
            bar = "#" * (_BAR * position // end)
            notice(f"{FILLING}[{bar:.<{_BAR}}] {100 * position // end} % of {end:,} events")

    try:
        await views.catch_up(log.store, progress=progress)
    except CorruptEventError as damage:
        return views, damage
    except BaseException:
        views.close()
        raise
    finally:
        slow.cancel()
    return views, None


async def is_far_behind(log: OpenLog, events: int) -> bool:
    """Whether the read models lack more than *events* events of the log."""
    with closing(log.backend.open_views()) as views:
        return await log.store.last_position() - views.checkpoint.position > events


_WIDTH = 200
_MOST = 8
"""The most ids in an error message."""


def session_ids(models: ReadModels) -> list[str]:
    """Return the ids of all sessions, the last changed first.

    Raises:
        CorruptEventError: the log is damaged, so that sessions may be missing.
    """
    if models.damage is not None:
        raise models.damage
    newest_first = "SELECT stream FROM sessions ORDER BY updated_us DESC"
    return [shown(stream) for (stream,) in ask(models.db, "sessions", newest_first)]


async def find_session(log: OpenLog, name: str, ids: Callable[[], Awaitable[Sequence[str]]]) -> str:
    """Return the stream of the session whose id is *name*, or begins with it.

    If several ids of one tree begin with *name*, the topmost session is meant.

    Raises:
        UnknownSessionError: no session matches, or more than one; the message lists some.
    """
    log.check_may("read")
    try:
        stream = log.session_stream(name)
        if (await log.store.head(sibling(stream, "inbox"))).version:
            return stream
    except InvalidNameError:
        pass
    known, own = await ids(), f"{log.tenant}/" if log.tenant else ""
    begin = (name, f"{own}{name}")
    found = [each for each in known if each.startswith(begin)] if name else []
    if found:
        top = min(found, key=len)
        if all(f"{each}.".startswith(f"{top}.") for each in found):  # the others are below it
            return session_stream(top)
        raise UnknownSessionError(name, f"more than one session begins so: {_some(found)}")
    beginnings = {each[: len(name) + 1]: each for each in reversed(known)}
    near = closest(name, [*known, *beginnings], most=3)
    close = list(dict.fromkeys(beginnings.get(each, each) for each in near))
    meant = f"; did you mean {_some(close)}?" if close else ""
    raise UnknownSessionError(as_typed(name), f"there is no such session in {log.url}{meant}")


async def check_content(log: OpenLog, stream: str) -> None:
    """Raise if the content of a session was removed.

    Raises:
        RejectedError: it was; the message says when, by whom and why.
    """
    async for event in log.store.read(stream, limit=1):
        if event.payload is not None:
            return
    from cueline.events.retention import SessionEmptied, retention_stream  # noqa: PLC0415 - as facts

    told = ""
    async for recorded, fact in log.journal().read(retention_stream(tenant_of(stream))):
        if isinstance(fact, SessionEmptied) and fact.session == stream:
            who = recorded.actor.partition(":")[2]
            why = f"{fact.cause} on {recorded.recorded_at:%Y-%m-%d} by {who}"
            told = ": ".join(filter(None, (why, fact.reason or fact.archive)))
    if told:
        raise RejectedError(shown(stream), f"its content was {told}")


def as_typed(name: str) -> str:
    """Return *name* for a message: on one line, and quoted if it is empty."""
    line = " ".join(name.split())
    if not line:
        return repr(name)
    return line if len(line) <= _WIDTH else line[: _WIDTH - 1] + "…"


def _some(ids: Sequence[str]) -> str:
    more = f" and {len(ids) - _MOST} more" if len(ids) > _MOST else ""
    return ", ".join(ids[:_MOST]) + more
