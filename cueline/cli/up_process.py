"""Runs `cueline up` after its checks have passed."""

import asyncio
import json
import os
import signal
from contextlib import suppress

import typer

from cueline.cli.failure import Exit, print_redacted
from cueline.cli.settings_context import SettingsContext
from cueline.cli.terminal import ending_signals, leave_terminal, show_cursor
from cueline.client.document import document
from cueline.client.status import row_of
from cueline.clock import SystemClock
from cueline.console.progress import progress
from cueline.console.text import visible
from cueline.errors import LogUnavailableError
from cueline.runtime.up import UpPlan, UpProcess, run_up, start_up
from cueline.runtime.up_record import UpRecord

_LOG_SECONDS = 1.0
_STARTING = "starting Ray, and what drives the sessions"


def print_up(record: UpRecord, text: str, *, as_json: bool) -> None:
    """Print the address of `up`, for people or for programs."""
    typer.echo(json.dumps(document(row_of(record))) if as_json else visible(text))


def place_of(record: UpRecord) -> str:
    """Return the address of `up` in words."""
    ray = "kept by Ray" if record.kept_by == "ray" else f"process {record.keeper.pid}, Ray"
    return f"{ray} at {record.address}, cueline {record.version}"


async def keep(plan: UpPlan, outside: SettingsContext, *, as_json: bool) -> None:
    """Keep *plan* running, and print its errors, until a signal ends it.

    Raises:
        ClusterError: Ray is not usable, or has ended.
        LogLostError: the log's file is gone.
    """
    over = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in ending_signals():
        loop.add_signal_handler(number, _end, over, number)
    print_redacted(f"starting for {plan.log} …", outside)
    with progress(_STARTING) as ready:
        async with run_up(plan) as kept:
            ready()
            print_up(kept.record, f"up: {place_of(kept.record)}", as_json=as_json)
            typer.echo(_found(kept.found, recovers=plan.recover), err=as_json)
            if kept.url is not None:
                typer.echo(f"pages at {kept.url}; `cueline open` signs you in", err=as_json)
            ended = asyncio.create_task(over.wait())
            watching = asyncio.create_task(_watch(kept, outside))
            looking = asyncio.create_task(_look(kept))
            tasks = (ended, watching, looking)
            await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
            for task in tasks:
                task.cancel()
            failed = [task for task in (watching, looking) if task.done()]
            error = failed[0].exception() if failed else None
            if error is not None:
                # Now: where its Ray has died, Ray may end this process before the last word.
                print_redacted(str(error), outside)
            typer.echo("going down; a second Ctrl-C leaves at once", err=True)
            if error is not None:
                raise error


async def leave(plan: UpPlan, outside: SettingsContext, *, as_json: bool) -> None:
    """Start *plan* on a cluster where Ray keeps it, and print its address.

    Raises:
        ClusterError: Ray is not usable.
    """
    print_redacted(f"starting for {plan.log} …", outside)
    with progress(_STARTING):
        record, found = await start_up(plan)
    print_up(record, f"up: {place_of(record)}; `cueline down` ends it", as_json=as_json)
    typer.echo(_found(found, recovers=plan.recover), err=as_json)


def _found(count: int, *, recovers: bool) -> str:
    if not count:
        return "no session was left running"
    sessions = "1 session was" if count == 1 else f"{count} sessions were"
    return f"{sessions} left running; " + ("going on" if recovers else "left alone")


def _end(over: asyncio.Event, number: int) -> None:
    if number == signal.SIGHUP:
        leave_terminal()
    # Only a second Ctrl-C of a person ends the process at once: the system and the shell both send
    # SIGHUP, and each `cueline down` sends SIGTERM.
    if number == signal.SIGINT and over.is_set():
        # Ray's processes end with this one; recorded facts stay.
        show_cursor()
        os._exit(Exit.LEFT)
    over.set()


async def _watch(kept: UpProcess, outside: SettingsContext) -> None:
    while True:
        for line in await kept.watch():
            print_redacted(line, outside)


async def _look(kept: UpProcess) -> None:
    """Check without end that the log exists, because a cluster records nothing without it."""
    clock = SystemClock()
    while True:
        with suppress(LogUnavailableError):  # the commands that use the log report it
            await kept.look()
        await clock.sleep(_LOG_SECONDS)
