"""The Python API: opens a log, and a place that runs its sessions."""

import os
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Literal, get_args

from cueline.actors.background_task import Trouble
from cueline.actors.runner_slots import SLOTS, Slots
from cueline.client.client import Client, open_client
from cueline.config.config_file import DEFAULT_LOG
from cueline.errors import ConfigError, CuelineError
from cueline.events.log_url import LogName, LogUrl
from cueline.events.stream import trouble_message
from cueline.runtime.inline import inline
from cueline.runtime.open_log import OpenLog, open_log
from cueline.runtime.place import Place
from cueline.runtime.up_record import find_up
from cueline.stores.backend import backend_of

On = Literal["auto", "ray", "inline"]
"""The place of sessions: see `open_runtime`."""


PlaceName = Literal["up", "ray", "inline"]
"""The kind of a place: a running `cueline up`, Ray, or this process."""


class Runtime(Client):
    """A client that also runs the sessions that it starts, at its place."""


def place_for(log: LogUrl, on: On = "auto", address: str | None = None) -> PlaceName:
    """Return the place where a command on *log* runs its sessions.

    This is the running `cueline up` of the log, or the log's server; else the Ray of *address*
    or RAY_ADDRESS, or, with *on* `ray`, a new one; else this process.

    Raises:
        ConfigError: the log has a server, which has the sessions.
    """
    if log.is_remote and on != "auto":
        raise ConfigError(str(log), f"its sessions run at the server: leave {on!r} out")
    if on == "inline":
        return "inline"
    if log.is_remote or find_up(log) is not None:
        return "up"
    # A variable that is set to nothing is not set.
    named = address or os.environ.get("RAY_ADDRESS")
    alone = backend_of(log).writer_place == "process"
    return "ray" if on == "ray" or (named and not alone) else "inline"


@asynccontextmanager
async def runtime_on(
    log: OpenLog, *, on: On = "auto", address: str | None = None, on_trouble: Trouble
) -> AsyncIterator[Runtime]:
    """Open the place from `place_for` for the sessions of *log*.

    Raises:
        ClusterError: there is no usable cluster; the message says what to do.
        LogUnavailableError: the log cannot be used there.
    """
    scope: set[str] = set()
    found = place_for(log.url, on, address)
    if log.server is not None:
        yield Runtime(log, Place(log.url))
        return
    if found == "inline":
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
    sandboxes: int = 10,
    on_trouble: Callable[[str, CuelineError], None] = _print_trouble,
) -> AsyncIterator[Runtime]:
    """Open the log of that URL or *path*, and run the sessions that are started or resumed here.

    Args:
        path: the log's file, created if it is missing, or a URL: `sqlite:///` and the path,
        `postgresql://…`, `memory:` or `memory:NAME`. A log in memory is used `inline`.
        on: `auto` uses the running `cueline up` of the log, else the Ray cluster of
        *address* or RAY_ADDRESS, else this process. `ray` starts a cluster if `auto`
        would use this process, until the block ends; `inline` always uses this process.
        address: the address of the Ray cluster, if it is not that of the `cueline up`.
        slots: the number of calls of async tools at a time; not used by a running `cueline up`.
        workers: the number of calls of other tools at a time, each in its own process.
        sandboxes: the number of started sandboxes at a time; not used by a running `cueline up`.
        on_trouble: called with the reason for each session that cannot run.

    Raises:
        LogUnavailableError: the log cannot be used; the message says what to do.
        ClusterError: there is no usable cluster; the message says what to do.
        ConfigError: the URL or *on* is unknown, an *address* is given with `inline`, or a number
        is below 1; nothing was created.
    """
    if on not in get_args(On):
        raise ConfigError("on", f"{on!r} is none of 'auto', 'ray' and 'inline'")
    if on == "inline" and address is not None:
        raise ConfigError("address", f"{address} is Ray's, and 'inline' drives all in this process")
    for name, count in {"slots": slots, "workers": workers, "sandboxes": sandboxes}.items():
        if count < 1:
            raise ConfigError(name, f"{count} is less than 1: no tool could run")
    async with open_log(path) as opened:
        log = replace(opened, slots=Slots(slots, workers), sandbox_slots=sandboxes)
        async with runtime_on(log, on=on, address=address, on_trouble=on_trouble) as runtime:
            yield runtime


@asynccontextmanager
async def connect(server: str, *, token: str | None = None) -> AsyncIterator[Client]:
    """Connect to the `cueline serve` at the URL *server*, which carries out the requests.

    The client has the methods of a local one. It retries for a minute while the server is away.

    Args:
        server: the URL: `https://…`, or `http://` and an address of this machine.
        token: a token that `cueline tokens issue` made; by default that in CUELINE_TOKEN.

    Raises:
        ConfigError: the URL is no such URL, or there is no token.
        LogUnavailableError: the server cannot be reached, refuses the token, or is no
            `cueline serve` of this version.
    """
    url = LogUrl.of(server)
    if not url.is_remote:
        raise ConfigError(str(url), "this is no URL of a server; `open_runtime` opens a log")
    async with open_client(replace(url, token=token or "")) as client:
        yield client
