"""The Python API: a log, and a place where its sessions are driven."""

import os
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Literal, get_args

from cueline.actors.background_task import Trouble
from cueline.actors.slot import SLOTS, Slots
from cueline.client.client import Client
from cueline.config.config_file import DEFAULT_LOG
from cueline.errors import ConfigError, CuelineError
from cueline.events.log_url import LogName, LogUrl
from cueline.events.stream import trouble_message
from cueline.runtime.inline import inline
from cueline.runtime.open_log import OpenLog, open_log
from cueline.runtime.up_record import find_up
from cueline.stores.backend import backend_of

On = Literal["auto", "ray", "inline"]
"""Where sessions are to be driven: see `open_runtime`."""


PlaceName = Literal["up", "ray", "inline"]
"""Where sessions are driven: by a running `cueline up`, on Ray, or in this process."""


class Runtime(Client):
    """A client with a place that runs the sessions that are started here."""


def place_for(log: LogUrl, on: On = "auto", address: str | None = None) -> PlaceName:
    """Return where a command on *log* drives its sessions.

    That is the running `cueline up` of the log; else the Ray of *address* or RAY_ADDRESS,
    or, *on* `ray`, a new one; else this process.
    """
    if on == "inline":
        return "inline"
    if find_up(log) is not None:
        return "up"
    # A variable that is set to nothing is not set.
    named = address or os.environ.get("RAY_ADDRESS")
    alone = backend_of(log).writer_place == "process"
    return "ray" if on == "ray" or (named and not alone) else "inline"


@asynccontextmanager
async def runtime_on(
    log: OpenLog, *, on: On = "auto", address: str | None = None, on_trouble: Trouble
) -> AsyncIterator[Runtime]:
    """Drive sessions of *log* where `place_for` says.

    Raises:
        ClusterError: there is no usable cluster; the message says what to do.
        LogUnavailableError: the log cannot be used there.
    """
    scope: set[str] = set()
    if place_for(log.url, on, address) == "inline":
        async with inline(log, scope=scope, on_trouble=on_trouble) as here:
            yield Runtime(log, here)
        return
    from cueline.runtime.on_ray import on_ray  # noqa: PLC0415 - Ray takes its time, and not everybody needs it

    async with on_ray(log, scope=scope, address=address, on_trouble=on_trouble) as there:
        yield Runtime(log, there)


def _print_trouble(stream: str, error: CuelineError) -> None:
    print(trouble_message(stream, error), file=sys.stderr)  # noqa: T201 - there is nobody else to tell


@asynccontextmanager
async def open_runtime(
    path: LogName = DEFAULT_LOG,
    *,
    on: On = "auto",
    address: str | None = None,
    slots: int = SLOTS.loop,
    workers: int = SLOTS.workers,
    on_trouble: Callable[[str, CuelineError], None] = _print_trouble,
) -> AsyncIterator[Runtime]:
    """Open the log of that URL or *path*, and run what is started or resumed here.

    Args:
        path: the log's file, made if it is not there, or a URL: `sqlite:///` and the
            path, `memory:` or `memory:NAME`. One in memory is driven `inline`.
        on: `auto` uses the running `cueline up` of the log, else the Ray cluster of
            *address* or RAY_ADDRESS, else this process. `ray` starts a cluster where `auto`
            would use this process, for as long as this lasts; `inline` always drives
            everything in this process.
        address: of the Ray cluster, when it is not the one `cueline up` started.
        slots: how many calls of async tools run at once; a running `cueline up` has its own.
        workers: how many calls of other tools run at once, each in a process of its own.
        on_trouble: told of sessions that cannot be driven, and why.

    Raises:
        LogUnavailableError: the log cannot be used; the message says what to do.
        ClusterError: there is no usable cluster; the message says what to do.
        ConfigError: no log is known by such a URL, *on* is another word, an *address* goes with
            `inline`, or no tool could run; nothing was made.
    """
    if on not in get_args(On):
        raise ConfigError("on", f"{on!r} is none of 'auto', 'ray' and 'inline'")
    if on == "inline" and address is not None:
        raise ConfigError("address", f"{address} is Ray's, and 'inline' drives all in this process")
    for name, count in {"slots": slots, "workers": workers}.items():
        if count < 1:
            raise ConfigError(name, f"{count} is less than 1: no tool could run")
    async with open_log(path) as opened:
        log = replace(opened, slots=Slots(slots, workers))
        async with runtime_on(log, on=on, address=address, on_trouble=on_trouble) as runtime:
            yield runtime
