"""`cueline down`: end the actors that `cueline up` started."""

import json
import os
import signal
import time
from contextlib import suppress
from typing import Annotated

import typer

from cueline.cli import open_log
from cueline.cli.option import DEFAULT_LOG, JsonOption, LogOption
from cueline.cli.settings_context import settings_context_of
from cueline.cli.terminal import is_attended
from cueline.cli.trust import check_log_is_known
from cueline.cli.up import LOOK_SECONDS
from cueline.cli.up_process import print_up
from cueline.clock import SystemClock
from cueline.errors import ClusterError, LogUnavailableError
from cueline.events.log_url import LogUrl
from cueline.runtime.up import end_left_behind, record_of
from cueline.runtime.up_record import UpRecord

DOWN_SECONDS = 40.0
"""The seconds for the end of `up`, in addition to the grace time of calls."""


def down(
    ctx: typer.Context,
    *,
    address: Annotated[
        str | None,
        typer.Option(metavar="HOST:PORT", help="The Ray cluster, if the record of `up` is lost."),
    ] = None,
    log: LogOption = DEFAULT_LOG,
    as_json: JsonOption = False,
) -> None:
    """End the actors that `cueline up` started for this log, and no others.

    You can repeat the command.

    \b
    Example:
      cueline down
    """
    check_log_is_known(ctx, log, asks=is_attended() and not as_json)
    record = UpRecord.read(log)
    if record is None and address is None:
        typer.echo(json.dumps(None) if as_json else "nothing is up for this log")
        return
    grace_seconds = settings_context_of(ctx).settings.grace_seconds
    by_process = record is not None and record.kept_by == "process" and record.lives
    if record is None or not (by_process and _takes_it_down(record, grace_seconds)):
        record = open_log.run(_end_orphans(log, record, address, grace_seconds))
    record.withdraw(log)
    print_up(record, "down", as_json=as_json)


def _takes_it_down(record: UpRecord, grace_seconds: float) -> bool:
    """End the process of `up`, and its actors; return False if the process had to be killed."""
    keeper = record.keeper.pid
    for number in (signal.SIGTERM, signal.SIGKILL):
        with suppress(ProcessLookupError):
            os.kill(keeper, number)
            # A process that Ctrl-Z stopped would not get the signal, nor would its Ray.
            os.killpg(os.getpgid(keeper), signal.SIGCONT)
        if open_log.run(_ended(record, DOWN_SECONDS + grace_seconds)):
            return number is signal.SIGTERM
    raise ClusterError("`cueline up`", f"process {keeper} does not end")


async def _ended(record: UpRecord, seconds: float) -> bool:
    clock = SystemClock()
    deadline = time.monotonic() + seconds
    while record.lives and time.monotonic() < deadline:
        await clock.sleep(LOOK_SECONDS)
    return not record.lives


async def _end_orphans(
    log: LogUrl, record: UpRecord | None, address: str | None, grace_seconds: float
) -> UpRecord:
    """End the remaining actors of the cluster; return *record*, or one for the searched address."""
    try:
        async with open_log.reader(log) as reader:
            record = record or record_of(reader.log, str(address))
            await end_left_behind(reader.log, record, address=address, grace_seconds=grace_seconds)
    except LogUnavailableError:
        if record is None:
            raise
    return record
