"""The open log and the place of sessions, which a client needs to carry out wishes."""

from typing import Protocol

from cueline.actors.fold import SessionCache
from cueline.runtime.open_log import OpenLog
from cueline.runtime.place import Place


class Connection(Protocol):
    """An open log and the place of its sessions, without the other methods of a client."""

    log: OpenLog
    place: Place
    cache: SessionCache

    async def find(self, name: str) -> str:
        """Return the stream of the session with this id, unique beginning of an id, or stream."""
