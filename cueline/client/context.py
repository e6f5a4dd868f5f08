"""What a wish needs of a client."""

from typing import Protocol

from cueline.actors.fold import SessionCache
from cueline.runtime.open_log import OpenLog
from cueline.runtime.place import Place


class Connection(Protocol):
    """An open log, and who drives its sessions: what a wish needs of a client."""

    log: OpenLog
    place: Place
    cache: SessionCache

    async def find(self, name: str) -> str:
        """Return the stream of the session with this id, unique beginning of an id, or stream."""
