"""Says one wish to a session and to all sessions below it."""

from collections.abc import Awaitable, Callable
from typing import TypeVar

from cueline.actors.session_tree import with_descendants
from cueline.client.client import Client
from cueline.errors import RejectedError, SessionFinishedError, SessionOwnedError
from cueline.events.stream import shown

T = TypeVar("T")


async def over_tree(
    client: Client, session: str, wish: Callable[[str], Awaitable[T]], *, tree: bool
) -> list[T]:
    """Return what became of *wish*, which gets an id, in each session that could take it.

    Without *tree* only the session itself gets it. Sessions below it that have ended, are
    stopping or need nothing are left out.

    Raises:
        UnknownSessionError: there is no such session.
        CuelineError: as *wish* raises it for the session itself.
    """
    if not tree:
        return [await wish(session)]
    top, *below = await with_descendants(client.log.journal(), await client.find(session))
    said = [await wish(shown(top))]
    for stream in below:
        try:
            said.append(await wish(shown(stream)))
        except (RejectedError, SessionFinishedError, SessionOwnedError):
            continue
    return said
