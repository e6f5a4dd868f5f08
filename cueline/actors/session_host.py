"""The session host: the process in which many sessions live."""

import asyncio
from collections.abc import Callable
from typing import Protocol

from cueline.actors.drive import Drive, Models
from cueline.actors.effect import Collaborators
from cueline.actors.entity import Entity
from cueline.errors import (
    CorruptEventError,
    CuelineError,
    FencedError,
    MissingBlobError,
    UnknownEventTypeError,
    WrongExpectedVersionError,
)
from cueline.events.store import Head
from cueline.events.stream import sibling

ACTIVATIONS = 50
"""So many sessions are brought to life at a time."""
ACTIVE = 10_000
"""So many sessions live in one host."""


class HostPort(Protocol):
    """A session host as a dispatcher sees it, near or far."""

    async def drive(self, streams: list[str]) -> None:
        """Bring sessions to life, or have those that live look into their inbox."""
        ...

    async def active(self) -> list[str]:
        """Return the sessions that live here."""
        ...


class SessionHost:
    """Holds a session while there is work, and nothing of it while there is none (I12)."""

    def __init__(
        self,
        incarnation: str,
        parts: Collaborators,
        *,
        on_trouble: Callable[[str, CuelineError], None],
        most: int = ACTIVE,
    ) -> None:
        self.incarnation = incarnation
        self._parts = parts
        self._models = Models(parts.models)
        self._drives: dict[str, Drive] = {}
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._loading = asyncio.Semaphore(ACTIVATIONS)
        self._set_aside: set[str] = set()
        """Sessions that this code cannot read; each fails alone."""
        self._on_trouble = on_trouble
        self._most = most
        self._draining = False

    async def drive(self, streams: list[str]) -> None:
        """See `HostPort.drive`."""
        for stream in streams:
            self.activate(stream)

    async def active(self) -> list[str]:
        """See `HostPort.active`."""
        return list(self._tasks)

    def activate(self, stream: str) -> None:
        """Bring a session to life, or have it look into its inbox."""
        if stream in self._tasks:
            if stream in self._drives:
                self._drives[stream].nudge()
            return
        full = len(self._tasks) >= self._most
        if self._draining or full or stream in self._set_aside:
            return
        task = asyncio.create_task(self._live(stream))
        self._tasks[stream] = task
        task.add_done_callback(lambda _: self._tasks.pop(stream, None))

    async def settled(self, stream: str) -> None:
        """Wait until *stream* does not live here (any more)."""
        while (task := self._tasks.get(stream)) is not None:
            await asyncio.wait([task])

    async def drain(self, seconds: float) -> None:
        """Take nothing on, let what lives go on for *seconds*, then let go of it."""
        self._draining = True
        if self._tasks:
            await asyncio.wait(list(self._tasks.values()), timeout=seconds)
        await self.close()

    async def close(self) -> None:
        """Let go of everything; what is in flight is found again by its key."""
        self._draining = True
        tasks = list(self._tasks.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await self._models.close()

    async def _live(self, stream: str) -> None:
        """Drive one session until it rests, and again when a message came meanwhile."""
        try:
            while await self._drive_once(stream):
                pass
        except (FencedError, WrongExpectedVersionError):
            # Somebody else owns it now; whatever we meant to do is theirs to do.
            return
        except (CorruptEventError, MissingBlobError, UnknownEventTypeError) as error:
            self._set_aside.add(stream)
            self._on_trouble(stream, error)
        except CuelineError as error:
            self._on_trouble(stream, error)
        finally:
            self._drives.pop(stream, None)

    async def _drive_once(self, stream: str) -> bool:
        async with self._loading:
            journal = self._parts.journal(None)
            entity = Entity(stream, self.incarnation, journal, self._parts.clock)
            drive = Drive(entity, self._parts, self._models)
            self._drives[stream] = drive
            await drive.load()
        await drive.run()
        read = entity.state.inbox_read
        del self._drives[stream]
        # Dropped first, compared afterwards: a message that came in between is
        # either seen here or nudges a session that is not there any more.
        inbox: Head = await journal.store.head(sibling(stream, "inbox"))
        return inbox.version > max(read, 1)
