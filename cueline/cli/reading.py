"""Reads one session for a command that looks, up to where it can be read."""

from collections import deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime

from cueline.actors.followed import Followed, Past
from cueline.cli import opened
from cueline.cli.failure import Exit, tell
from cueline.cli.naming import find_session
from cueline.errors import CorruptEventError, UnknownEventTypeError
from cueline.events.codec import Codec
from cueline.events.journal import Journal
from cueline.events.log_url import LogUrl
from cueline.events.session import SessionEvent
from cueline.events.store import EventStore, RecordedEvent


def journal_of(store: EventStore) -> Journal:
    """Return the log in facts, to be read."""
    return Journal(store, Codec(), lambda: datetime.now(UTC))


@asynccontextmanager
async def session_in(log: LogUrl, name: str) -> AsyncIterator[Followed]:
    """Open the session that *name* stands for.

    Raises:
        UnknownSessionError: there is none; the message names some that are like it.
        LogUnavailableError: the log cannot be read.
    """
    async with opened.looking(log) as store:
        stream = await find_session(store, log, name)
        yield Followed(stream, journal_of(store))


async def read_past(
    log: LogUrl, name: str, until: int | None = None, *, last: int | None = None
) -> tuple[Followed, Past, Exit]:
    """Return the session that *name* stands for as it was read, and its past; see `past_of`.

    Raises:
        UnknownSessionError: there is none; the message names some that are like it.
        LogUnavailableError: the log cannot be read.
    """
    async with session_in(log, name) as followed:
        return followed, *await past_of(followed, until, last=last)


async def past_of(
    followed: Followed, until: int | None = None, *, last: int | None = None
) -> tuple[Past, Exit]:
    """Return what has happened, or the *last* of it, as far as it can be read.

    What cannot is told on stderr.
    """
    past: deque[tuple[RecordedEvent, SessionEvent | None]] = deque(maxlen=last)
    try:
        async for recorded, fact in followed.read(until):
            past.append((recorded, fact))
    except (CorruptEventError, UnknownEventTypeError) as error:
        tell(error)
        return list(past), Exit.FAILED
    return list(past), Exit.DONE
