"""Runs many sessions, a limited number at a time."""

import asyncio
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field

from cueline.client.client import Client
from cueline.client.session import Result
from cueline.client.start import StartRequest
from cueline.deciders.session import Status
from cueline.errors import CuelineError, SessionFinishedError, SessionOwnedError
from cueline.events.stream import shown


@dataclass(frozen=True, slots=True)
class Outcome:
    """The state in which one of the sessions came to rest."""

    number: int
    """The session's place among the requests, from 0."""
    session: str
    """The session's id."""
    result: Result
    known: bool = False
    """Whether the session was started earlier, with the same key."""


@dataclass
class ManyRun:
    """Runs the sessions of *requests*, at most *concurrency* at a time, in their order.

    A session whose key was used before is not started again: it continues, if it has not ended.
    """

    client: Client
    requests: Sequence[StartRequest]
    concurrency: int
    changed: Callable[[], None] = lambda: None
    """Called when a session starts or ends."""
    running: set[str] = field(default_factory=set)
    """The ids of the running sessions."""
    outcomes: list[Outcome] = field(default_factory=list)
    """The outcomes, in the order of the ends."""
    left: bool = False
    """Whether no more sessions are started."""

    async def run(self) -> None:
        """Run until each session has ended or waits for a person; errors are outcomes, too."""
        requests = iter(enumerate(self.requests))

        async def work() -> None:
            for number, request in requests:
                if self.left:
                    return
                self.outcomes.append(await self._outcome(number, request))
                self.changed()

        await asyncio.gather(*[work() for _ in range(min(self.concurrency, len(self.requests)))])

    async def leave(self) -> None:
        """Start no more sessions, and ask the running ones to pause."""
        self.left = True
        for session in tuple(self.running):
            with suppress(CuelineError):  # it has just ended
                await self.client.pause(session)

    async def _outcome(self, number: int, request: StartRequest) -> Outcome:
        name, known = shown(self.client.log.session_stream(request.id)), False
        self.running.add(name)
        self.changed()
        try:
            session = await request.submit(self.client)
            known = session.receipt is not None and not session.receipt.recorded
            if known:
                with suppress(SessionFinishedError, SessionOwnedError):
                    session = await self.client.resume(session.id)
            return Outcome(number, name, await session.result(), known)
        except CuelineError as error:
            return Outcome(number, name, Result(Status.FAILED, str(error)), known)
        finally:
            self.running.discard(name)
