"""Says one wish to a session and to all sessions below it."""

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, TypeVar

from cueline.actors.session_tree import with_descendants
from cueline.errors import RejectedError, SessionFinishedError, SessionOwnedError
from cueline.events.stream import shown

if TYPE_CHECKING:
    from cueline.client.client import Client

T = TypeVar("T")


async def over_tree(client: "Client", session: str, wish: Callable[[str], Awaitable[T]]) -> list[T]:
    """Return what became of *wish*, which gets an id, in each session that could take it.

    Sessions below that have ended, are stopping or need nothing are left out.

    Raises:
        UnknownSessionError: there is no such session.
        CuelineError: as *wish* raises it for the session itself.
    """
    top, *below = await with_descendants(client.log.journal(), await client.find(session))
    said = [await wish(shown(top))]
    for stream in below:
        try:
            said.append(await wish(shown(stream)))
        except (RejectedError, SessionFinishedError, SessionOwnedError):
            continue
    return said
