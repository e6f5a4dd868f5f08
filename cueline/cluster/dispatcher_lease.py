"""The charge of a log: one dispatcher has it, and no other while that one lives."""

import asyncio
from collections.abc import Sequence
from contextlib import suppress

from cueline.actors.presence import BEAT_SECONDS, beat_always, death_of, find
from cueline.clock import Clock
from cueline.cluster.epoch_fence import DISPATCHER
from cueline.errors import (
    ClusterError,
    CuelineError,
    FencedError,
    KeyReusedError,
    LogLostError,
)
from cueline.events.dispatcher import DispatcherEvent, DispatcherStarted
from cueline.events.journal import FactWrite, Journal
from cueline.events.store import NO_STREAM, Presence, PresenceBoard


class DispatcherLease:
    """What a dispatcher has of its log: an epoch, a stream, and a place on the board."""

    def __init__(
        self, presence: Presence, journal: Journal, board: PresenceBoard, clock: Clock
    ) -> None:
        self.epoch = 0
        """In every order of this dispatcher."""
        self._presence = presence
        self._journal = journal
        self._board = board
        self._clock = clock
        self._version = NO_STREAM
        self._beating: asyncio.Task[None] | None = None

    async def take(self) -> None:
        """Become the log's dispatcher, and say from now on that it has one.

        Raises:
            ClusterError: a living dispatcher has it; take that down.
        """
        store = self._journal.store
        await self._board.beat(self._presence)
        head = await store.head(DISPATCHER)
        owner = find(await self._board.all(), head.owner)
        if owner is not None and death_of(owner, self._clock.now()) is None:
            await self._board.leave(self._presence.incarnation)
            raise acquire_lease(owner)
        self._version = head.version
        try:
            self.epoch = await store.acquire(DISPATCHER, self._presence.incarnation, head.epoch)
        except FencedError:
            # Another was quicker; it has beaten before.
            await self.take()
            return
        # At once: a fleet may take longer to start than silence counts as death.
        beating = beat_always(self._board, self._presence, self._clock)
        self._beating = asyncio.create_task(beating)

    async def record(self, facts: Sequence[DispatcherEvent]) -> None:
        """Append *facts*, however long the log is away.

        Raises:
            FencedError: another dispatcher has succeeded this one.
            LogLostError: there is nothing left to have charge of.
        """
        steps = [[fact] for fact in facts]
        while True:
            write = FactWrite(
                stream=DISPATCHER,
                steps=steps,
                expected_version=self._version,
                epoch=self.epoch,
                actor="system:dispatcher",
            )
            try:
                await self._journal.append([write], key=None)
            except (FencedError, LogLostError):
                raise
            except KeyReusedError:
                # Of what was appended last, we were cancelled before we heard.
                self._version = (await self._journal.store.head(DISPATCHER)).version
            except CuelineError:
                await self._clock.sleep(BEAT_SECONDS)
            else:
                self._version += len(facts)
                return

    async def began(self, up: str) -> int:
        """Return where in the log *up* began: Ray may have started its dispatcher again since."""
        async for recorded, fact in self._journal.read(DISPATCHER):
            if isinstance(fact, DispatcherStarted) and fact.up == up:
                return recorded.position
        raise AssertionError("it was recorded")

    async def leave(self) -> None:
        """Say that the log has no dispatcher any more."""
        if self._beating is not None:
            self._beating.cancel()
        with suppress(CuelineError):
            await self._board.leave(self._presence.incarnation)


def acquire_lease(by: Presence) -> ClusterError:
    """Return what whoever wants a log is told of *by*, which has it."""
    process = f"process {by.pid} on {by.machine}"
    return ClusterError("this log", f"another `cueline up` has it ({process}); take that down")
