"""The Python API: a log, and a place where its sessions are driven."""

import sys
from collections.abc import AsyncIterator, Callable, Collection, Coroutine, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from cueline.actors.background import Trouble, told_of_trouble
from cueline.actors.breaker_reset import reset_breaker
from cueline.actors.family import Parents
from cueline.actors.fold import fold
from cueline.actors.inbox import asked_agent, new_id, unread_of
from cueline.actors.owner import check_resume, owner_of
from cueline.actors.slot import SLOTS, Slots
from cueline.agent import Agent
from cueline.config.place import DEFAULT_LOG
from cueline.deciders.session import SESSION, session_of
from cueline.deciders.session.unread import waived_secrets, will_stop
from cueline.environment import who
from cueline.errors import ConfigError, CuelineError
from cueline.events.agent import ToolSpec
from cueline.events.inbox import ResumeAsked, StartAsked
from cueline.events.stream import session_stream
from cueline.inline import inline
from cueline.preflight import check_limits, check_resumed, recorded
from cueline.secret import waiver
from cueline.session import Session
from cueline.up_record import recovers
from cueline.wiring import KnownPlace, Log, open_log


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
class Here:
    """See `Home`."""

    log: Path
    place: KnownPlace
    troubles: Troubles
    scope: set[str]

    @property
    def user(self) -> str:
        """See `Home`."""
        return who()

    def trouble(self, stream: str) -> CuelineError | None:
        """See `Home`."""
        return self.troubles.of(stream)

    def tries_again(self, stream: str) -> None:
        """See `Home`."""
        self.troubles.forget(stream)

    def takes_up(self, stream: str) -> bool:
        """See `Home`."""
        return (self.place.lasts and stream in self.scope) or recovers(self.log)

    def has(self, incarnation: str | None) -> bool:
        """See `Home`."""
        return self.place.has(incarnation)

    def settled(self, stream: str) -> Coroutine[object, object, None] | None:
        """See `Home`."""
        return self.place.settled(stream)

    async def take_up(self, stream: str) -> None:
        """See `Home`."""
        self.scope.add(stream)
        await self.place.place([stream])


class Runtime:
    """A log, and a place where the sessions that are started here are driven."""

    def __init__(self, log: Log, here: Here) -> None:
        self._log = log
        self._here = here
        self._parents = Parents(log.journal())

    async def start(
        self,
        agent: Agent,
        goal: str | None = None,
        *,
        open: bool = False,  # noqa: A002 - the word of the log
        id: str | None = None,  # noqa: A002 - the word of the log
        labels: Mapping[str, str] | None = None,
        parent: str | None = None,
        without_secrets: Collection[str] = (),
    ) -> Session:
        """Start a session of *agent*, and drive it as long as this runtime is open.

        Who wanted it is the login of this process: rules may exclude that from allowing its calls.

        Cancelled before it returns, it may have recorded the session, or not: who gave it
        an id can `resume` that, which drives it, or says that there is none.

        Args:
            agent: who works.
            goal: what the agent is told first; without one the session is idle
                until the first message.
            open: it stays for more messages after its goal, instead of ending.
            id: what it is called, in letters a-z, digits, `.` and `-`; chosen
                where none is given.
            labels: words of your own, by which `cueline list --json` and SQL find it.
            parent: the session whose child it is, by its id or stream: what it spends
                counts for the limits of all sessions above it, and the parent's log
                says when it was asked for, how it ended and what it spent.
            without_secrets: secrets of the agent that may be unknown where it is driven: what
                has their values in it is recorded as it is. Recorded, with who said so.

        Raises:
            ConfigError: mend the setting, file or variable it names; nothing was recorded.
            ToolImportError: make the tool importable where it will run.
            InvalidNameError: the id, or the parent's, has another form.
            RejectedError: there is a session of that id, or the tree is too deep or too large.
            UnknownSessionError: there is no such parent.
            SessionFinishedError: the parent has ended.
            UnknownOutcomeError: it may be recorded; who gave it an id can `resume` that.
            LogUnavailableError: the log cannot be used; do what the message says.
        """
        spec = recorded(agent, waived=without_secrets)
        said = waiver(spec, without_secrets, who())
        asked = StartAsked(
            agent=spec,
            goal=goal,
            open=open,
            labels=dict(labels or {}),
            asked_by=who(),
            asked_at=self._log.clock.now(),
        )
        if parent is not None:
            asked = await self._parents.child_of(session_stream(parent), asked)
            check_limits(spec, asked.allowances)
        name = new_id() if id is None else id
        stream = await self._log.ask_start(name, asked, by=f"user:{who()}", waived=said)
        self._here.scope.add(stream)
        # A parent that somebody else drives hears of it through its inbox.
        above = [asked.parent] if asked.parent in self._here.scope else []
        await self._here.place.place([stream, *filter(None, above)])
        return self._session(stream)

    async def resume(
        self,
        id: str,  # noqa: A002 - the word of the log
        *,
        accept_changed_tools: bool = False,
        without_secrets: Collection[str] = (),
    ) -> Session:
        """Go on with a session, by its id or stream, that crashed, was paused or interrupted.

        Args:
            id: which session.
            accept_changed_tools: go on with the session's tools as they are now, where they
                have changed since they were recorded; that is recorded.
            without_secrets: as for `start`.

        Raises:
            InvalidNameError: no id has this form.
            UnknownSessionError: there is no such session.
            SessionFinishedError: it has ended; fork it, or start another.
            SessionOwnedError: another living process drives it, and it is not paused;
                ask that one, with `session(id)`.
            ConfigError: mend the setting, folder or variable that it names; nothing was
                recorded.
            ToolChangedError: a tool has changed; accept that, or put it back; nothing was recorded.
            ToolImportError: make the tool importable again; nothing was recorded.
            UnknownOutcomeError: resume it again.
            LogUnavailableError: the log cannot be used; do what the message says.
        """
        stream = session_stream(id)
        session = self._session(stream)
        journal = self._log.journal()
        agent = await asked_agent(journal, stream)
        state, _ = await fold(journal, stream, SESSION, session_of(stream))
        owner = await owner_of(self._log.store, self._log.board, stream, self._log.clock.now())
        ours = owner is not None and self._here.has(owner.incarnation)
        unread = [said for _, said in await unread_of(journal, state)]
        check_resume(state, unread, None if ours else owner)
        said = waiver(agent, without_secrets, who())
        tools: tuple[ToolSpec, ...] = ()
        if not will_stop(state, unread):  # nothing starts in one that ends
            tools = check_resumed(
                agent if state.setup is None else state.agent,
                self._log.path,
                waived=waived_secrets(state, [*unread, said]),
                accept_changed_tools=accept_changed_tools,
                accept_with=f"await runtime.resume({id!r}, accept_changed_tools=True)",
            )
        # Though it may have been asked to stop, and refuse it: a host that has set it aside hears.
        self._here.tries_again(stream)
        if said is not None:
            await self._log.post(stream, said, agent, by=f"user:{who()}")
        await self._log.post(stream, ResumeAsked(tools=tools), agent, by=f"user:{who()}")
        await self._here.take_up(stream)
        return session

    async def reset_breaker(self, name: str, by: str | None = None) -> bool:
        """Have calls go out again that a breaker keeps back.

        Args:
            name: of the breaker, as `cueline breakers` shows it.
            by: who resets it; the login of this process, where nobody is named.

        Returns:
            Whether it was anything but closed.

        Raises:
            RejectedError: there is no such breaker.
            LogUnavailableError: the log cannot be used; do what the message says.
        """
        by = who() if by is None else by
        return await reset_breaker(self._log.journal(), name, by, self._log.clock.now())

    def session(self, id: str) -> Session:  # noqa: A002 - the word of the log
        """Return the session of that id, or stream, to look at or to send messages to.

        Nothing is read yet: whether there is one is seen when it is used.

        Raises:
            InvalidNameError: no id has this form.
        """
        return self._session(session_stream(id))

    def _session(self, stream: str) -> Session:
        return Session(stream, self._log, self._here)


def _print_trouble(stream: str, error: CuelineError) -> None:
    print(told_of_trouble(stream, error), file=sys.stderr)  # noqa: T201 - there is nobody else to tell


@asynccontextmanager
async def open_runtime(
    path: str | Path = DEFAULT_LOG,
    *,
    on: Literal["ray", "inline"] = "ray",
    address: str | None = None,
    slots: int = SLOTS.loop,
    workers: int = SLOTS.workers,
    on_trouble: Callable[[str, CuelineError], None] = _print_trouble,
) -> AsyncIterator[Runtime]:
    """Open the log at *path*, and drive what is started or resumed here.

    Args:
        path: the log's file; made if it is not there.
        on: `ray` attaches to a cluster or starts one for as long as this lasts;
            `inline` drives everything in this process.
        address: of the Ray cluster, when it is not the one `cueline up` started.
        slots: how many calls of async tools run at once; a running `cueline up` has its own.
        workers: how many calls of other tools run at once, each in a process of its own.
        on_trouble: told of sessions that cannot be driven, and why.

    Raises:
        LogUnavailableError: the log cannot be used; the message says what to do.
        ClusterError: there is no usable cluster; the message says what to do.
        ConfigError: *on* is neither, an *address* goes with `inline`, or no tool could run;
            nothing was made.
    """
    if on not in ("ray", "inline"):
        raise ConfigError("on", f"{on!r} is neither 'ray' nor 'inline'")
    if on == "inline" and address is not None:
        raise ConfigError("address", f"{address} is Ray's, and 'inline' drives all in this process")
    for name, count in {"slots": slots, "workers": workers}.items():
        if count < 1:
            raise ConfigError(name, f"{count} is less than 1: no tool could run")
    scope: set[str] = set()
    troubles = Troubles(on_trouble)
    async with open_log(Path(path)) as opened:
        log = replace(opened, slots=Slots(slots, workers))
        if on == "inline":
            async with inline(log, scope=scope, on_trouble=troubles.hear) as here:
                yield Runtime(log, Here(log.path, here, troubles, scope))
        else:
            from cueline.on_ray import on_ray  # noqa: PLC0415 - Ray takes its time, and not everybody needs it

            async with on_ray(log, scope=scope, address=address, on_trouble=troubles.hear) as there:
                yield Runtime(log, Here(log.path, there, troubles, scope))
