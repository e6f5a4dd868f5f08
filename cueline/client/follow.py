"""What comes in a session, as it comes."""

from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing, suppress
from functools import partial

from cueline.actors.background import meanwhile
from cueline.actors.followed import Followed
from cueline.actors.owner import LOOK_SECONDS, Vigil, sleeps
from cueline.client.history import History
from cueline.clock import Clock
from cueline.deciders.session import rests
from cueline.errors import LogUnavailableError
from cueline.events.session import SessionEvent
from cueline.events.store import RecordedEvent
from cueline.up_record import recovers
from cueline.wiring import Log

Left = Callable[[str], None]
"""Told why nobody drives a session now."""


async def follow(
    log: Log, history: History, left: Left
) -> AsyncGenerator[tuple[RecordedEvent, SessionEvent | None]]:
    """Yield the events after a *history* as they come, until the session has ended.

    The state of the history goes on with them. *left* is told, each time it comes about,
    that nobody drives the session although it does not rest.

    Raises:
        CorruptEventError: an event cannot be read.
    """
    followed = history.followed
    if history.state.finished:
        return
    up = partial(recovers, log.url)
    vigil = Vigil(history.stream, log.store, log.board, log.clock, taken_up=up)
    with meanwhile(tell_when_left(followed, vigil, log.clock, left)):
        async with aclosing(log.lookout.grows(history.stream)) as growing:
            async for _ in growing:
                async for pair in followed.read():
                    yield pair
                if followed.state.finished:
                    return


async def tell_when_left(followed: Followed, vigil: Vigil, clock: Clock, left: Left) -> None:
    """Tell each time that nobody drives a session any more which does not rest; for ever."""
    told = False
    while True:
        with suppress(LogUnavailableError):  # looked at again
            state, now = followed.state, clock.now()
            idle = (rests(state, now) or sleeps(state, now)) and not await followed.unread()
            why = await vigil.why_left(idle=idle)
            if why is not None and not told:
                left(why)
            told = why is not None
        await clock.sleep(LOOK_SECONDS)
