"""Runs one session and shows it, until it ends or only a person can continue it."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from functools import partial

import typer

from cueline.cli.exit_report import report
from cueline.cli.failure import Exit
from cueline.cli.run_options import RunOptions
from cueline.cli.terminal import Interrupts, print_json
from cueline.cli.terminal_view import TerminalView
from cueline.cli.up_lookup import note_detached, other_version, resume_command
from cueline.client.client import Client
from cueline.client.export import event_document
from cueline.client.runtime import Runtime
from cueline.client.session import Session
from cueline.config.settings import Settings
from cueline.console.progress import progress
from cueline.console.screen import Screen
from cueline.console.text import Line, json_of
from cueline.errors import ClusterError, CorruptEventError
from cueline.events.session import SessionEvent
from cueline.events.store import NO_STREAM, RecordedEvent
from cueline.events.stream import shown
from cueline.runtime.open_log import OpenLog

Record = Callable[[Client], Awaitable[Session]]
"""Records a request to start or resume a session, and returns the session."""
_NOTHING = "left before anything was recorded"


class RequestRecorder:
    """Records a request to start or resume a session, unless the user types Ctrl-C first."""

    def __init__(self, record: Record) -> None:
        self.recorded = False
        self.left = False
        """Whether Ctrl-C came before the request was recorded."""
        self._record = record

    async def record(self, runtime: Client) -> None:
        """Record the request.

        Raises:
            Exit: the user typed Ctrl-C first; nothing is recorded.
        """
        if self.left:
            typer.echo(_NOTHING, err=True)
            raise typer.Exit(Exit.LEFT)
        await self._record(runtime)
        self.recorded = True


async def carry_on(
    client: Client, stream: str, options: RunOptions, record: Record, *, show_past: bool = True
) -> Exit:
    """Record the request, and run and show the session, unless it is detached.

    Raises:
        ClusterError: there is no Ray to run it; nothing was recorded.
        CuelineError: the session cannot be driven or read.
    """
    if options.detach:
        session = await record(client)
        assert session.receipt is not None, "what was recorded just now has a receipt"
        return note_detached(options.log, session.receipt, as_json=options.as_json)
    screen = Screen(quiet=options.as_json, plain=options.plain)
    terminal, rested = await run_session(
        client, stream, options, record, screen=screen, show_past=show_past
    )
    return report(terminal, options, rested=rested)


async def run_session(
    client: Client,
    stream: str,
    options: RunOptions,
    record: Record,
    *,
    screen: Screen,
    show_past: bool,
) -> tuple[TerminalView, bool]:
    """Run *stream* until it rests; return its view, and whether it rested.

    Raises:
        ClusterError: Ray is not usable; the message says whether anything was recorded.
        CuelineError: the session cannot be driven or read.
        Exit: Ctrl-C came before anything was recorded.
    """
    log = client.log.with_settings(options.context.settings)

    def print_fact(recorded: RecordedEvent, fact: SessionEvent) -> None:
        print_json(json_of(event_document(recorded, fact)))

    terminal = TerminalView(
        client,
        stream,
        screen,
        attended=options.attended,
        hide_thinking=options.hide_thinking,
        facts=print_fact if options.json_stream else None,
    )
    recorder = RequestRecorder(record)
    loop = asyncio.get_running_loop()

    def pause() -> None:
        recorder.left = True
        if recorder.recorded:
            loop.call_soon_threadsafe(terminal.pause)

    way = resume_command(options.log, shown(stream))

    def leave() -> str:
        terminal.let_go()
        left = f"left at once; what was recorded stays, and goes on with\n  {way}"
        return left if recorder.recorded else _NOTHING

    try:
        # `goes_on`: another process runs it, so closing the watcher's window ends nothing.
        with Interrupts(pause, leave, goes_on=options.place == "up"):
            await terminal.catch_up(show=show_past)
            warning = None if options.place == "inline" else other_version(options.log)
            screen.show([] if warning is None else [Line("note", warning)])
            async with _running(log, options, terminal) as runtime:
                await recorder.record(runtime)
                if recorder.left:
                    terminal.pause()
                rested = await terminal.until_it_rests()
            if rested and log.backend.writer_place != "process" and log.server is None:
                await _check_kept(log, stream, terminal.watcher.reader.version)
    except ClusterError:
        recorded = f"it is recorded; once Ray can be used, `{way}` goes on"
        nothing = "nothing was recorded; without --ray and --address it needs no Ray"
        typer.echo(recorded if recorder.recorded else nothing, err=True)
        raise
    return terminal, rested


@asynccontextmanager
async def _running(
    log: OpenLog, options: RunOptions, terminal: TerminalView
) -> AsyncIterator[Runtime]:
    """Open the place of sessions, and let *terminal* follow its session there."""
    long, screen = options.takes_long, terminal.screen
    say = partial(screen.show, [Line("dim", long)] if long else [])
    with progress(long, plain=not (long and screen.live), instead=say) as started:
        async with options.runtime(log, terminal.stuck) as runtime:
            started()
            terminal.attach(runtime)
            yield runtime


async def _check_kept(log: OpenLog, stream: str, seen: int) -> None:
    """Check through a new connection that the log's file has the shown events.

    Raises:
        StoreError: the events are missing; the message says why.
    """
    version = NO_STREAM
    store = log.backend.open(log.clock, read_only=True)
    try:
        async for recorded, _ in replace(log, store=store).journal().read(stream):
            version = recorded.version
    finally:
        await store.close()
    if version < seen:
        reason = "it was recorded, and is not in the log's file"
        raise CorruptEventError(stream, version + 1, 0, reason)


def seconds_to_answer(options: RunOptions, settings: Settings | None = None) -> float:
    """Return how many seconds a question waits if the policy does not set `approval_seconds`."""
    approval = (settings or options.context.settings).approval
    return approval.attached_seconds if options.attended else approval.detached_seconds
