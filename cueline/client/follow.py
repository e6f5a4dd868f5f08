"""Follows the new events of a session."""

from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing, suppress
from functools import partial

from cueline.actors.background_task import background_task
from cueline.actors.session_owner import LOOK_SECONDS, OrphanDetector, has_wake_time
from cueline.actors.session_reader import SessionReader
from cueline.client.history import History
from cueline.clock import Clock
from cueline.deciders.session import rests
from cueline.errors import LogUnavailableError
from cueline.events.session import SessionEvent
from cueline.events.store import RecordedEvent
from cueline.runtime.open_log import OpenLog
from cueline.runtime.up_record import recovers

Left = Callable[[str], None]
"""The callback for the reason why a session has no driver."""


async def follow(
    log: OpenLog, history: History, left: Left
) -> AsyncGenerator[tuple[RecordedEvent, SessionEvent | None]]:
    """Yield the new events after a *history*, until the session has ended.

    The state of the history continues with them. *left* is called each time that the session
    loses its driver although it does not rest.

    Raises:
        CorruptEventError: an event cannot be read.
    """
    session_reader = history.followed
    if history.state.finished:
        return
    up = partial(recovers, log.url)
    orphan_detector = OrphanDetector(history.stream, log.store, log.board, log.clock, taken_up=up)
    with background_task(warn_of_orphan(session_reader, orphan_detector, log.clock, left)):
        async with aclosing(log.notifier.changes(history.stream)) as growing:
            async for _ in growing:
                async for pair in session_reader.read():
                    yield pair
                if session_reader.state.finished:
                    return


async def warn_of_orphan(
    session_reader: SessionReader, orphan_detector: OrphanDetector, clock: Clock, left: Left
) -> None:
    """Call *left* each time that a session that does not rest has no driver; without end."""
    told = False
    while True:
        with suppress(LogUnavailableError):  # looked at again
            state, now = session_reader.state, clock.now()
            idle = (
                rests(state, now) or has_wake_time(state, now)
            ) and not await session_reader.unread()
            why = await orphan_detector.orphan_reason(idle=idle)
            if why is not None and not told:
                left(why)
            told = why is not None
        await clock.sleep(LOOK_SECONDS)
