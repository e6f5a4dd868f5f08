"""Drives one session and shows it, until only a person can make it go on."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import replace
from functools import partial

import typer

from cueline.actors.background_task import background_task
from cueline.cli.failure import Exit
from cueline.cli.run_options import RunOptions
from cueline.cli.signals import Interrupts
from cueline.cli.terminal_view import Facts, TerminalView
from cueline.cli.up_lookup import other_version, resume_command
from cueline.client.client import Client
from cueline.client.session import Session
from cueline.client.watch import until_taken_over, until_up_is_over
from cueline.console.line import Line
from cueline.console.progress import progress
from cueline.console.screen import Screen
from cueline.errors import ClusterError, CorruptEventError
from cueline.events.store import NO_STREAM
from cueline.events.stream import shown
from cueline.runtime import Runtime, runtime_on
from cueline.wiring import OpenLog

Record = Callable[[Client], Awaitable[Session]]
"""Puts into the log what somebody wishes of a session, and has it driven."""
_NOTHING = "left before anything was recorded"


@asynccontextmanager
async def running(
    log: OpenLog, stream: str, where: RunOptions, watch: TerminalView
) -> AsyncIterator[Runtime]:
    """Start what drives *stream*: here, or on Ray.

    Raises:
        ClusterError: Ray is not usable; the message says what to do.
    """
    # The cluster that is named is for where no `up` has the log.
    address = None if where.place == "up" else where.address
    long = where.takes_long
    say = partial(watch.screen.show, [Line("dim", long)] if long else [])
    with progress(long, plain=not (long and watch.screen.live), instead=say) as started:
        async with runtime_on(log, on=where.on, address=address, on_trouble=watch.stuck) as runtime:
            started()
            with background_task(_leave_in_time(runtime, stream, watch)):
                yield runtime


async def _leave_in_time(runtime: Runtime, stream: str, watch: TerminalView) -> None:
    """Leave where it is waited in vain."""
    if runtime.place == "up":
        await leave_with_up(runtime.log, stream, watch)
    elif runtime.place == "inline":
        await until_taken_over(runtime.log, lambda: watch.state, runtime.context.has)
        watch.give_way()


async def leave_with_up(log: OpenLog, stream: str, watch: TerminalView) -> None:
    """Leave when the `cueline up` has gone, or set *stream* aside: nobody drives it any more."""
    typer.echo(f"{shown(stream)}: {await until_up_is_over(log, stream)}", err=True)
    watch.leave()


class StartRecorder:
    """What somebody wishes of a session: recorded once there is something that carries it out."""

    def __init__(self, record: Record) -> None:
        self.recorded = False
        self.left = False
        """Whether somebody asked to leave meanwhile."""
        self._record = record

    async def record(self, runtime: Client) -> None:
        """Put it into the log.

        Raises:
            Exit: Ctrl-C came before.
        """
        if self.left:
            typer.echo(_NOTHING, err=True)
            raise typer.Exit(Exit.LEFT)
        await self._record(runtime)
        self.recorded = True


async def drive(
    log: OpenLog,
    stream: str,
    where: RunOptions,
    record: Record,
    *,
    screen: Screen,
    show_past: bool,
    facts: Facts | None = None,
) -> tuple[TerminalView, bool]:
    """Drive *stream* until it rests, and return what was seen, and whether it rested.

    Raises:
        ClusterError: Ray is not usable; whether anything was recorded is told.
        CuelineError: it cannot be driven, or not be read.
        Exit: Ctrl-C came before anything was recorded.
    """
    watch = TerminalView(log, stream, screen, attended=where.attended, facts=facts)
    beginning = StartRecorder(record)
    loop = asyncio.get_running_loop()

    def pause() -> None:
        beginning.left = True
        if beginning.recorded:
            loop.call_soon_threadsafe(watch.pause)

    def leave() -> str:
        watch.let_go()
        way = resume_command(where.log, shown(stream))
        left = f"left at once; what was recorded stays, and goes on with\n  {way}"
        return left if beginning.recorded else _NOTHING

    # Of another process, that is; closing the window of who only watches ends nothing.
    goes_on = where.place == "up"
    signals = Interrupts(pause, leave, goes_on=goes_on)
    with _notice_start(beginning, where, stream), signals:
        await watch.catch_up(show=show_past)
        warning = None if where.place == "inline" else other_version(where.log)
        screen.show([] if warning is None else [Line("note", warning)])
        async with running(log, stream, where, watch) as runtime:
            await beginning.record(runtime)
            if beginning.left:
                watch.pause()
            rested = await watch.until_it_rests()
        if rested and log.backend.writer_place != "process":
            await _check_kept(log, watch)
    return watch, rested


async def _check_kept(log: OpenLog, watch: TerminalView) -> None:
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
def _notice_start(beginning: StartRecorder, where: RunOptions, stream: str) -> Iterator[None]:
    try:
        yield
    except ClusterError:
        way = resume_command(where.log, shown(stream))
        recorded = f"it is recorded; once Ray can be used, `{way}` goes on"
        nothing = "nothing was recorded; without --ray and --address it needs no Ray"
        typer.echo(recorded if beginning.recorded else nothing, err=True)
        raise
