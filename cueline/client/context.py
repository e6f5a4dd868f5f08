"""The part of a client that wishes need."""

from typing import Protocol

from cueline.actors.fold import SessionCache
from cueline.runtime.open_log import OpenLog
from cueline.runtime.place import Place


class Connection(Protocol):
    """An open log and the place of its sessions: the part of a client that wishes need."""

    log: OpenLog
    place: Place
    cache: SessionCache

    async def find(self, name: str) -> str:
        """Return the stream of the session with this id, unique beginning of an id, or stream."""
