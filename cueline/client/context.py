"""The open log and the place of sessions, which a client needs to carry out wishes."""

from copy import copy
from dataclasses import replace
from typing import Protocol, TypeVar

from cueline.actors.fold import SessionCache
from cueline.deciders.person import Person
from cueline.runtime.open_log import OpenLog
from cueline.runtime.place import Place


class Connection(Protocol):
    """An open log and the place of its sessions, without the other methods of a client."""

    log: OpenLog
    place: Place
    cache: SessionCache

    async def find(self, name: str) -> str:
        """Return the stream of the session with this id, unique beginning of an id, or stream."""


C = TypeVar("C", bound=Connection)


def acting_for(client: C, person: Person) -> C:
    """Return *client* with the name, the rights and the tenant of *person*."""
    other = copy(client)
    other.log = replace(client.log, person=person)
    return other
