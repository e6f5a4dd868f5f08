"""Drives one session and shows it, until only a person can make it go on."""

import asyncio
from collections.abc import AsyncIterator, Callable, Collection
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from cueline.cli.running import is_up
from cueline.cli.signals import Interrupts
from cueline.cli.watching import Watch
from cueline.console.screen import Screen
from cueline.console.telling import Line
from cueline.runtime import Log, Place, inline

LOOK_SECONDS = 2.0
"""How often to see whether what drives the session elsewhere is still there."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Where:
    """Where a session is to be driven."""

    log: Path
    inline: bool
    address: str | None = None

    def note(self) -> list[Line]:
        """Say what takes a while, or who else drives it."""
        if self.inline:
            return []
        if is_up(self.log):
            return [Line("dim", "driven by the `cueline up` of this log")]
        return [
            Line("dim", f"connecting to Ray at {self.address}" if self.address else "starting Ray")
        ]


class Elsewhere:
    """A running `cueline up`: it sees every inbox, and needs no word from us."""

    def __init__(self, log: Log, path: Path, when_gone: Callable[[], None]) -> None:
        self._log = log
        self._path = path
        self._when_gone = when_gone

    async def place(self, streams: Collection[str]) -> None:
        """See `Place.place`."""

    async def watch(self) -> None:
        """Say when it has gone: then nobody drives the session any more."""
        while is_up(self._path):
            await self._log.clock.sleep(LOOK_SECONDS)
        self._when_gone()


@asynccontextmanager
async def placed(log: Log, stream: str, where: Where, watch: Watch) -> AsyncIterator[Place]:
    """Start what drives *stream*, and it alone: here, or on Ray.

    Raises:
        ClusterError: Ray is not usable; the message says what to do.
    """
    if where.inline:
        async with inline(log, scope={stream}, on_trouble=watch.stuck) as here:
            yield here
        return
    if is_up(where.log):
        elsewhere = Elsewhere(log, where.log, watch.leave)
        watching = asyncio.create_task(elsewhere.watch())
        try:
            yield elsewhere
        finally:
            watching.cancel()
        return
    from cueline.on_ray import on_ray

    async with on_ray(
        where.log, scope={stream}, address=where.address, on_trouble=watch.stuck
    ) as there:
        yield there


async def drive(
    log: Log, stream: str, where: Where, *, screen: Screen, attended: bool, show_past: bool
) -> tuple[Watch, bool]:
    """Drive *stream* until it rests, and return what was seen, and whether it rested.

    Raises:
        CuelineError: it cannot be driven, or not be read.
    """
    watch = Watch(log, stream, screen, attended=attended)
    loop = asyncio.get_running_loop()

    def pause() -> None:
        loop.call_soon_threadsafe(watch.pause)

    with Interrupts(pause, watch.let_go) as interrupts:
        await watch.catch_up(show=show_past)
        screen.show(where.note())
        async with placed(log, stream, where, watch) as place:
            # Ray takes SIGTERM for itself when it starts.
            interrupts.install()
            await place.place([stream])
            rested = await watch.until_it_rests()
    return watch, rested
