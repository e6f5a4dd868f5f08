"""Follows the live text of a session, in any process."""

import asyncio
from collections.abc import AsyncGenerator, Iterator
from contextlib import ExitStack, aclosing, contextmanager, suppress

from cueline.actors.background_task import background_task
from cueline.actors.live_text import (
    LiveTextSubscription,
    TextDelta,
    ToolProgress,
    piece_of,
    receive,
)
from cueline.actors.session_owner import owner_of
from cueline.errors import CuelineError
from cueline.events.session import ModelFailed, ModelReplied, SessionEvent
from cueline.events.store import Presence, RecordedEvent
from cueline.runtime.open_log import OpenLog
from cueline.runtime.place import Place
from cueline.stores.backend import LogServer

__all__ = ["LiveTextSubscription", "TextDelta", "ToolProgress", "live_text", "with_live_text"]

Told = tuple[RecordedEvent, SessionEvent]
"""An event, and its fact."""


@contextmanager
def live_text(
    log: OpenLog, stream: str, place: Place | None = None
) -> Iterator[LiveTextSubscription]:
    """Get the pieces of the replies of session *stream* that begin in this block.

    The pieces come from the hosts of this process, in *place*, or from the process that owns
    the session. If that process cannot be reached, there are no pieces: the log has the replies.
    """
    with ExitStack() as stack:
        here = None if place is None else place.live_text
        pieces = LiveTextSubscription()
        if (server := log.server) is not None:
            stack.enter_context(background_task(_follow_server(server, stream, pieces)))
            yield pieces
            return
        if here is not None:
            pieces = stack.enter_context(here.subscribe(stream))
        local = None if here is None else place
        stack.enter_context(background_task(_follow_owner(log, stream, pieces, local)))
        yield pieces


async def _follow_owner(
    log: OpenLog, stream: str, pieces: LiveTextSubscription, local: Place | None
) -> None:
    """Stay connected to the owner of the session, which is looked up at each event.

    The hosts of *local* need no connection.
    """
    connected = ""
    receiving: asyncio.Task[None] | None = None
    try:
        with suppress(Exception):  # the follower of the log gets its errors
            async with aclosing(log.notifier.changes(stream)) as growing:
                async for _ in growing:
                    name = (await log.store.head(stream)).owner
                    if name is None or (local is not None and local.has(name)):
                        continue
                    if name == connected and receiving is not None and not receiving.done():
                        continue
                    owner = await owner_of(log.store, log.board, stream, log.clock.now())
                    if owner is None or not owner.address:
                        continue
                    # It may have taken the session up since: its pieces would come twice.
                    if local is not None and local.has(owner.incarnation):
                        continue
                    if receiving is not None:
                        receiving.cancel()
                    connected = owner.incarnation
                    receiving = asyncio.create_task(_receive(owner, stream, pieces))
    finally:
        if receiving is not None:
            receiving.cancel()


async def _follow_server(server: LogServer, stream: str, pieces: LiveTextSubscription) -> None:
    with suppress(CuelineError):  # the follower of the log gets its errors
        async with aclosing(server.live_text(stream)) as lines:
            async for line in lines:
                pieces.put(piece_of(line))


async def _receive(owner: Presence, stream: str, pieces: LiveTextSubscription) -> None:
    with suppress(OSError, TimeoutError, ValueError):  # the log has the replies
        await receive(owner.address, owner.token, stream, pieces.put)


async def with_live_text(
    happening: AsyncGenerator[Told], pieces: LiveTextSubscription
) -> AsyncGenerator[Told | TextDelta]:
    """Yield the events of *happening*, and the *pieces* of each reply before its event.

    Pieces that arrive after the event of their reply are left out: the event has all of it.
    """
    ended: set[tuple[str, int]] = set()

    async def following() -> Told | None:
        return await anext(happening, None)

    event = asyncio.ensure_future(following())
    taking = asyncio.ensure_future(pieces.take())
    try:
        while True:
            await asyncio.wait((event, taking), return_when=asyncio.FIRST_COMPLETED)
            came = taking.result() if taking.done() else pieces.ready()
            if taking.done():
                taking = asyncio.ensure_future(pieces.take())
            for piece in came:
                if piece.call not in ended:
                    yield piece
            if event.done():
                told = event.result()
                if told is None:
                    return
                if isinstance(told[1], ModelReplied | ModelFailed):
                    ended.add((told[1].effect, told[1].attempt))
                yield told
                event = asyncio.ensure_future(following())
    finally:
        for each in (event, taking):
            each.cancel()
        await asyncio.wait((event, taking))
        await happening.aclose()
