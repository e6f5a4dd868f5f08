"""The Python API: a log, and a place where its sessions are driven."""

import os
import sys
from collections.abc import AsyncIterator, Callable, Coroutine, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from typing import Literal, get_args

from cueline.actors.background_task import Trouble
from cueline.actors.live_text import LiveTextHub
from cueline.actors.slot import SLOTS, Slots
from cueline.client.client import Client
from cueline.config.config_file import DEFAULT_LOG
from cueline.config.environment import user_name
from cueline.errors import ConfigError, CuelineError
from cueline.events.agent import AgentSpec
from cueline.events.log_url import LogName, LogUrl
from cueline.events.stream import trouble_message
from cueline.host_wiring import KnownPlacement
from cueline.inline import inline
from cueline.stores.backend import backend_of
from cueline.up_record import find_up, recovers
from cueline.wiring import OpenLog, open_log

On = Literal["auto", "ray", "inline"]
"""Where sessions are to be driven: see `open_runtime`."""


class Troubles:
    """What goes wrong with the sessions of a runtime: told to its user, and to who waits."""

    def __init__(self, tell: Trouble) -> None:
        self._tell = tell
        self._lasting: dict[str, CuelineError] = {}

    def hear(self, stream: str, error: CuelineError) -> None:
        """Pass on what is new."""
        if str(error) == str(self.of(stream)):
            return
        if not error.retryable:
            self._lasting[stream] = error
        self._tell(stream, error)

    def of(self, stream: str) -> CuelineError | None:
        """Return why a session cannot be driven, where that does not pass by itself."""
        return self._lasting.get(stream)

    def forget(self, stream: str) -> None:
        """Have a session tried again: what was in the way may be mended."""
        self._lasting.pop(stream, None)


@dataclass(frozen=True, slots=True)
class LocalContext:
    """What a runtime knows of its sessions: see `RuntimeContext`."""

    log: LogUrl
    place: KnownPlacement
    troubles: Troubles
    scope: set[str]

    @property
    def user(self) -> str:
        """See `RuntimeContext`."""
        return user_name()

    @property
    def drives(self) -> bool:
        """See `RuntimeContext`."""
        return self.place.is_dedicated

    @property
    def live_text(self) -> LiveTextHub | None:
        """See `RuntimeContext`."""
        return self.place.live_text

    def trouble(self, stream: str) -> CuelineError | None:
        """See `RuntimeContext`."""
        return self.troubles.of(stream)

    def tries_again(self, stream: str) -> None:
        """See `RuntimeContext`."""
        self.troubles.forget(stream)

    def takes_up(self, stream: str) -> bool:
        """See `RuntimeContext`."""
        return (self.place.is_dedicated and stream in self.scope) or recovers(self.log)

    def has(self, incarnation: str | None) -> bool:
        """See `RuntimeContext`."""
        return self.place.has(incarnation)

    def settled(self, stream: str) -> Coroutine[object, object, None] | None:
        """See `RuntimeContext`."""
        return self.place.settled(stream)

    async def check_tools(self, agents: Sequence[AgentSpec]) -> None:
        """See `RuntimeContext`."""
        await self.place.check_tools(agents)

    async def take_up(self, stream: str, parent: str | None = None) -> None:
        """See `RuntimeContext`."""
        self.scope.add(stream)
        # A parent that somebody else drives hears of it through its inbox.
        above = [] if parent is None or parent not in self.scope else [parent]
        await self.place.place([stream, *above])


Place = Literal["up", "ray", "inline"]
"""Where sessions are driven: by a running `cueline up`, on Ray, or in this process."""


class Runtime(Client):
    """A client with a place where the sessions that are started here are driven."""

    def __init__(self, log: OpenLog, context: LocalContext, place: Place = "inline") -> None:
        super().__init__(log, context)
        self.place = place
        """Where they are driven."""


def place_for(log: LogUrl, on: On = "auto", address: str | None = None) -> Place:
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
    troubles = Troubles(on_trouble)
    place = place_for(log.url, on, address)
    if place == "inline":
        async with inline(log, scope=scope, on_trouble=troubles.hear) as here:
            yield Runtime(log, LocalContext(log.url, here, troubles, scope), place)
        return
    from cueline.on_ray.placement import on_ray  # noqa: PLC0415 - Ray takes its time, and not everybody needs it

    async with on_ray(log, scope=scope, address=address, on_trouble=troubles.hear) as there:
        yield Runtime(log, LocalContext(log.url, there, troubles, scope), place)


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
