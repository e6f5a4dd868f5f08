"""Drives one session and shows it, until only a person can make it go on."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager, nullcontext, suppress
from dataclasses import dataclass, replace
from functools import partial

import typer

from cueline.actors.background import meanwhile
from cueline.actors.owner import LOOK_SECONDS, Vigil, taker_of
from cueline.cli.failure import Exit
from cueline.cli.running import is_up, other_version, resuming
from cueline.cli.signals import Interrupts
from cueline.cli.watching import Facts, Watch
from cueline.console.progress import progress
from cueline.console.screen import Screen
from cueline.console.telling import Line
from cueline.errors import ClusterError, CorruptEventError, CuelineError
from cueline.events.log_url import LogUrl
from cueline.events.store import NO_STREAM
from cueline.events.stream import shown
from cueline.inline import Inline, inline
from cueline.wiring import Log, Place

Record = Callable[[], Awaitable[None]]
"""Puts into the log what somebody wishes of a session."""
_NOTHING = "left before anything was recorded"


@dataclass(frozen=True, slots=True, kw_only=True)
class Where:
    """Where a session is to be driven."""

    log: LogUrl
    inline: bool
    address: str | None = None

    @property
    def takes_long(self) -> str:
        """What takes more than a second before a session is driven."""
        if is_up(self.log):
            return "connecting to the `cueline up` of this log"
        return f"connecting to Ray at {self.address}" if self.address else "starting Ray"


@asynccontextmanager
async def placed(log: Log, stream: str, where: Where, watch: Watch) -> AsyncIterator[Place]:
    """Start what drives *stream*, and it alone: here, or on Ray.

    Raises:
        ClusterError: Ray is not usable; the message says what to do.
    """
    if where.inline:
        async with inline(log, scope={stream}, on_trouble=watch.stuck) as here:
            with meanwhile(_give_way(log, here, watch)):
                yield here
        return
    # The cluster that is named is for where no `up` has the log.
    address = None if is_up(where.log) else where.address
    say = partial(watch.screen.show, [Line("dim", where.takes_long)])
    with progress(where.takes_long, plain=not watch.screen.live, instead=say) as started:
        from cueline.on_ray import on_ray

        async with on_ray(log, scope={stream}, address=address, on_trouble=watch.stuck) as there:
            started()
            with nullcontext() if there.lasts else meanwhile(leave_with_up(log, stream, watch)):
                yield there


async def leave_with_up(log: Log, stream: str, watch: Watch) -> None:
    """Leave when the `cueline up` has gone, or set *stream* aside: nobody drives it any more."""
    vigil = Vigil(stream, log.store, log.board, log.clock, taken_up=lambda: True)
    why = None
    while why is None and is_up(log.url):
        await log.clock.sleep(LOOK_SECONDS)
        with suppress(CuelineError):  # looked at again
            why = await vigil.why_left(idle=False)
    ended = "the `cueline up` of this log has ended"
    told = ended if why is None else f"nobody drives it now ({why})"
    typer.echo(f"{shown(stream)}: {told}", err=True)
    watch.leave()


async def _give_way(log: Log, here: Inline, watch: Watch) -> None:
    """Leave where another process has the session, and waits for a call that is still with us."""
    while True:
        await log.clock.sleep(LOOK_SECONDS)
        with suppress(CuelineError):  # looked at again
            now = log.clock.now()
            if await taker_of(watch.state, log.store, log.board, now, here.has) is not None:
                watch.give_way()
                return


class Beginning:
    """What somebody wishes of a session: recorded once there is something that carries it out."""

    def __init__(self, record: Record) -> None:
        self.recorded = False
        self.left = False
        """Whether somebody asked to leave meanwhile."""
        self._record = record

    async def record(self) -> None:
        """Put it into the log.

        Raises:
            Exit: Ctrl-C came before.
        """
        if self.left:
            typer.echo(_NOTHING, err=True)
            raise typer.Exit(Exit.LEFT)
        await self._record()
        self.recorded = True


async def drive(
    log: Log,
    stream: str,
    where: Where,
    record: Record,
    *,
    screen: Screen,
    attended: bool,
    show_past: bool,
    facts: Facts | None = None,
) -> tuple[Watch, bool]:
    """Drive *stream* until it rests, and return what was seen, and whether it rested.

    Raises:
        ClusterError: Ray is not usable; whether anything was recorded is told.
        CuelineError: it cannot be driven, or not be read.
        Exit: Ctrl-C came before anything was recorded.
    """
    watch = Watch(log, stream, screen, attended=attended, facts=facts)
    beginning = Beginning(record)
    loop = asyncio.get_running_loop()

    def pause() -> None:
        beginning.left = True
        if beginning.recorded:
            loop.call_soon_threadsafe(watch.pause)

    def leave() -> str:
        watch.let_go()
        way = resuming(where.log, shown(stream), inline=where.inline)
        left = f"left at once; what was recorded stays, and goes on with\n  {way}"
        return left if beginning.recorded else _NOTHING

    # Of another process, that is; closing the window of who only watches ends nothing.
    goes_on = not where.inline and is_up(where.log)
    signals = Interrupts(pause, leave, goes_on=goes_on)
    with _telling_whether(beginning, where, stream), signals:
        await watch.catch_up(show=show_past)
        warning = None if where.inline else other_version(where.log)
        screen.show([] if warning is None else [Line("note", warning)])
        async with placed(log, stream, where, watch) as place:
            await beginning.record()
            if beginning.left:
                watch.pause()
            await place.place([stream])
            rested = await watch.until_it_rests()
        if rested:
            await _check_kept(log, watch)
    return watch, rested


async def _check_kept(log: Log, watch: Watch) -> None:
    """See that the log's file holds what was shown: the connections that wrote it keep pages.

    Raises:
        StoreError: it does not; the message says why.
    """
    stream, version = watch.state.stream, NO_STREAM
    store = log.backend.open(log.clock, read_only=True)
    try:
        async for recorded, _ in replace(log, store=store).journal().read(stream):
            version = recorded.version
    finally:
        await store.close()
    if version < watch.version:
        reason = "it was recorded, and is not in the log's file"
        raise CorruptEventError(stream, version + 1, 0, reason)


@contextmanager
def _telling_whether(beginning: Beginning, where: Where, stream: str) -> Iterator[None]:
    try:
        yield
    except ClusterError:
        way = resuming(where.log, shown(stream), inline=where.inline)
        recorded = f"it is recorded; once Ray can be used, `{way}` goes on"
        nothing = "nothing was recorded; with --inline it needs no Ray"
        typer.echo(recorded if beginning.recorded else nothing, err=True)
        raise
