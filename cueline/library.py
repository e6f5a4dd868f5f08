"""The Python API: a log, and a place where its sessions are driven."""

import sys
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Literal

from cueline.actors.family import child_of
from cueline.actors.inbox import ask_start, new_id
from cueline.agent import Agent
from cueline.errors import ConfigError, CuelineError
from cueline.events.clean import clean
from cueline.events.inbox import StartAsked
from cueline.events.stream import stream_name
from cueline.inline import inline
from cueline.runtime import DEFAULT_LOG, Log, Place, check_limits, open_log, recorded
from cueline.session import Session


class Runtime:
    """A log, and a place where the sessions that are started here are driven."""

    def __init__(self, log: Log, place: Place, scope: set[str]) -> None:
        self._log = log
        self._place = place
        self._scope = scope

    async def start(
        self,
        agent: Agent,
        goal: str | None = None,
        *,
        open: bool = False,  # noqa: A002 - the word of the log
        id: str | None = None,  # noqa: A002 - the word of the log
        labels: Mapping[str, str] | None = None,
        parent: str | None = None,
    ) -> Session:
        """Start a session of *agent*; with *open* it stays for more messages after its goal.

        With the id of a *parent* it is a child of that session: what it spends
        counts for the limits of all sessions above it, and the parent's log says
        when it was asked for, how it ended and what it spent.

        Raises:
            ConfigError: mend the setting, file or variable it names; nothing was recorded.
            ToolImportError: make the tool importable where it will run.
            RejectedError: there is a session of that id, or the tree is too deep or too large.
            UnknownSessionError: there is no such parent.
            SessionFinishedError: the parent has ended.
        """
        spec = recorded(agent)
        asked = StartAsked(
            agent=spec,
            goal=goal,
            open=open,
            labels=dict(labels or {}),
            asked_at=self._log.clock.now(),
        )
        if parent is not None:
            name = stream_name("session", parent)
            asked = await child_of(self._log.journal(), name, asked)
            check_limits(spec, asked.allowances)
        asked = clean(asked, self._log.redactor(spec))[0]
        stream = await ask_start(self._log.journal(spec), id or new_id(), asked)
        self._scope.add(stream)
        # A parent that somebody else drives hears of it through its inbox.
        above = [asked.parent] if asked.parent in self._scope else []
        await self._place.place([stream, *filter(None, above)])
        return self._session(stream)

    async def resume(self, id: str) -> Session:  # noqa: A002 - the word of the log
        """Go on with a session that crashed, was paused or interrupted.

        Raises:
            UnknownSessionError: there is no such session.
        """
        stream = stream_name("session", id)
        session = self._session(stream)
        await session.resume()
        self._scope.add(stream)
        await self._place.place([stream])
        return session

    def session(self, id: str) -> Session:  # noqa: A002 - the word of the log
        """Return the session of that id, to look at or to send messages to."""
        return self._session(stream_name("session", id))

    def _session(self, stream: str) -> Session:
        return Session(stream, self._log)


def _print_trouble(stream: str, error: CuelineError) -> None:
    print(f"{stream}: {error}", file=sys.stderr)  # noqa: T201 - there is nobody else to tell


@asynccontextmanager
async def open_runtime(
    path: str | Path = DEFAULT_LOG,
    *,
    on: Literal["ray", "inline"] = "ray",
    address: str | None = None,
    on_trouble: Callable[[str, CuelineError], None] = _print_trouble,
) -> AsyncIterator[Runtime]:
    """Open the log at *path*, and drive what is started or resumed here.

    Args:
        path: the log's file; made if it is not there.
        on: `ray` attaches to a cluster or starts one for as long as this lasts;
            `inline` drives everything in this process.
        address: of the Ray cluster, when it is not the one `cueline up` started.
        on_trouble: told of sessions that cannot be driven, and why.

    Raises:
        LogUnavailableError: the log cannot be used; the message says what to do.
        ClusterError: there is no usable cluster; the message says what to do.
        ConfigError: *on* is neither; nothing was made.
    """
    if on not in ("ray", "inline"):
        raise ConfigError("on", f"{on!r} is neither 'ray' nor 'inline'")
    scope: set[str] = set()
    async with open_log(Path(path)) as log:
        if on == "inline":
            async with inline(log, scope=scope, on_trouble=on_trouble) as here:
                yield Runtime(log, here, scope)
        else:
            from cueline.on_ray import on_ray  # noqa: PLC0415 - Ray takes its time, and not everybody needs it

            async with on_ray(
                log.path, scope=scope, address=address, on_trouble=on_trouble
            ) as there:
                yield Runtime(log, there, scope)
