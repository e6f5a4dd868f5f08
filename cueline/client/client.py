"""A client: the messages and questions that a person or a program may have for one log."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Collection, Mapping, Sequence
from contextlib import asynccontextmanager
from inspect import iscoroutine
from os import PathLike

from pydantic import JsonValue

from cueline.actors.breaker_reset import reset_breaker
from cueline.actors.fold import SessionCache
from cueline.agents.agent import Agent
from cueline.client.fleet import Count, ScaleReceipt, scale
from cueline.client.fork import fork_request
from cueline.client.inputs import Attachable, Output
from cueline.client.named import of_asking, of_named
from cueline.client.reader import Reader
from cueline.client.rerun import RerunResult, rerun_request
from cueline.client.resume import resume_request
from cueline.client.runs import retry, submit
from cueline.client.schedule import At, Every
from cueline.client.session import Result, Session
from cueline.client.start import StartOptions, start_request
from cueline.config.config_file import DEFAULT_LOG
from cueline.config.environment import user_name
from cueline.errors import ConfigError, CuelineError
from cueline.events.log_url import LogName
from cueline.events.start import QUEUE_SECONDS
from cueline.events.stream import session_stream
from cueline.runtime.open_log import OpenLog, open_log
from cueline.runtime.place import Place


class Client(Reader):
    """An open log, and what is known of who drives its sessions."""

    def __init__(self, log: OpenLog, place: Place) -> None:
        super().__init__(log)
        self.place = place
        self.cache = SessionCache(log.journal())

    send = of_named(Session.send)
    switch_model = of_named(Session.switch_model)
    pause = of_named(Session.pause)
    raise_limits = of_named(Session.raise_limits)
    stop = of_named(Session.stop)
    approve = of_asking(Session.approve)
    deny = of_asking(Session.deny)

    def session(self, id: str) -> Session:  # noqa: A002 - the word of the log
        """Return the session of that id, or stream, to look at or to send messages to.

        Nothing is read yet: whether there is one is seen when it is used.

        Raises:
            InvalidNameError: no id has this form.
        """
        if not isinstance(id, str):
            raise ConfigError("session", f"{id!r} is no text; an id is text, such as '7f3a'")
        return Session(self, session_stream(id), name=id)

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
        by = user_name() if by is None else by
        return await reset_breaker(self.log.journal(), name, by, self.log.clock.now())

    async def scale(
        self,
        *,
        hosts: Count | None = None,
        runners: Count | None = None,
        per_node: int | None = None,
        labels: Mapping[str, str] | None = None,
        resources: Mapping[str, float] | None = None,
        by: str | None = None,
    ) -> ScaleReceipt:
        """Ask for another number of hosts or runners; `cueline up` starts and retires them.

        Workers are counted by group: those of one kind with the same *per_node*, *labels* and
        *resources*. This sets the number of one group of each named kind, and of no other.
        It also counts if nothing runs now.

        Args:
            hosts: how many hosts, or the least and the most. Those above the least start when
                sessions wait for a place, and retire when they are idle.
            runners: how many runners, likewise.
            per_node: at most so many of the group on one node.
            labels: only on nodes that Ray knows by these labels; tools can demand them.
            resources: what each takes of its node: `cpus`, `gpus`, `memory` in bytes, or a
                resource of Ray's by its name; tools can demand them.
            by: who asks; the login of this process, where nobody is named.

        Raises:
            ConfigError: there can be no such number, label or resource; nothing was recorded.
            LogUnavailableError: the log cannot be used; do what the message says.
        """
        return await scale(
            self.log,
            {"host": hosts, "runner": runners},
            per_node=per_node,
            labels=labels or {},
            resources=resources or {},
            by=user_name() if by is None else by,
        )

    async def start(
        self,
        agent: Agent | str | PathLike[str],
        goal: str | None = None,
        *,
        open: bool = False,  # noqa: A002 - the word of the log
        id: str | None = None,  # noqa: A002 - the word of the log
        key: str | None = None,
        labels: Mapping[str, str] | None = None,
        parent: str | None = None,
        without_secrets: Collection[str] = (),
        output: Output | None = None,
        attachments: Sequence[Attachable] = (),
        parameters: Mapping[str, JsonValue] | None = None,
        at: At | None = None,
        every: Every | None = None,
    ) -> Session:
        """Start a session of *agent*, and run it as long as this runtime is open.

        *agent* works, or the agent of the file with that path. What else you may say of the
        session is described at the fields of `StartOptions`.

        Who wanted it is the login of this process: rules may exclude that from allowing its calls.

        Cancelled before it returns, it may have recorded the session, or not: who gave it
        an id can `resume` that, which drives it, or says that there is none.

        Raises:
            ParameterValidationError: the parameters do not fit the schema, which it holds.
            ConfigError: mend the setting, file or variable it names; nothing was recorded.
            ToolImportError: make the tool importable where it will run.
            InvalidNameError: the id, or the parent's, has another form.
            RejectedError: there is a session of that id, or the tree is too deep or too large,
                or the key started something else.
            UnknownSessionError: there is no such parent.
            SessionFinishedError: the parent has ended.
            UnknownOutcomeError: it may be recorded; who gave it an id can `resume` that, and
                who gave it a key can start it again.
            LogUnavailableError: the log cannot be used; do what the message says.
        """
        options = StartOptions(
            goal=goal,
            open=open,
            id=id,
            key=key,
            labels=labels,
            parent=parent,
            without_secrets=tuple(without_secrets),
            output=output,
            attachments=attachments,
            parameters=parameters,
            at=at,
            every=every,
        )
        request = start_request(agent, options, now=self.log.clock.now())
        return await request.submit(self)

    async def submit(
        self,
        blueprint: str,
        goal: str | None = None,
        parameters: Mapping[str, JsonValue] | None = None,
        *,
        texts: Mapping[str, str] | None = None,
        queue_seconds: float = QUEUE_SECONDS,
        parent: str | None = None,
        labels: Mapping[str, str] | None = None,
        key: str | None = None,
        at: At | None = None,
        every: Every | None = None,
    ) -> Session:
        """Start a run of a blueprint that a runner offers, or has offered.

        It waits until a runner that offers it claims it, and its calls go there.

        *blueprint* is its name, as `blueprints` returns it; a model without parameters needs
        a *goal*. The run waits *queue_seconds* for a runner, from its time on if it has one, and
        then fails; 0: it is refused now if no runner is online. What else you may say of the
        run is described at the fields of `StartOptions`.

        Raises:
            RejectedError: no runner ever offered that name, or the parameters do not fit; the
                message has their schema. Nothing was recorded.
            ConfigError: a goal is missing.
        """
        options = StartOptions(
            goal=goal,
            parameters=parameters,
            texts=texts,
            parent=parent,
            labels=labels,
            key=key,
            at=at,
            every=every,
        )
        return await submit(self, blueprint, options, queue_seconds=queue_seconds)

    async def retry(self, run: str) -> Session:
        """Start a run that has ended once more, as a new session with the link `retry_of`.

        Raises:
            UnknownSessionError: there is no such session.
            RejectedError: it has not ended, or is no run; and what `submit` raises.
        """
        return await retry(self, await self.find(run))

    async def gather(self, *sessions: Session | Awaitable[Session]) -> list[Result]:
        """Start sessions and wait for all; return how each stands, in their order.

        One that fails or waits for a person is a `Result` like the others.

        Args:
            sessions: sessions, or what `start` returns before it is awaited.

        Raises:
            CuelineError: as `start` and `Session.result` raise it. If a start fails, a note of
                the error names the sessions that were started before it; they go on.
        """
        begun: list[Session] = []
        try:
            for each in sessions:
                begun.append(each if isinstance(each, Session) else await each)  # noqa: PERF401 - the error needs those that began
        except CuelineError as error:
            if begun:
                error.add_note(f"started before: {', '.join(each.id for each in begun)}")
            raise
        finally:
            for left in filter(iscoroutine, sessions[len(begun) :]):
                left.close()  # else Python warns that nobody awaited it
        return list(await asyncio.gather(*[each.result() for each in begun]))

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
        request = await resume_request(
            self,
            await self.find(id),
            accept_changed_tools=accept_changed_tools,
            accept_with=f"await runtime.resume({id!r}, accept_changed_tools=True)",
            without_secrets=without_secrets,
        )
        return await request.submit(self)

    async def fork(
        self,
        session: str,
        *,
        at: int,
        goal: str | None = None,
        id: str | None = None,  # noqa: A002 - the word of the log
        accept_changed_tools: bool = False,
        without_secrets: Collection[str] = (),
    ) -> Session:
        """Start a session that shares another's past up to a version, and goes on from there.

        Nothing in flight crosses the fork. Its workspace is a copy, made now, in a
        folder beside the original; the model is told so.

        Args:
            session: whose past it shares.
            at: the last version of the shared past, as `Session.events` tells it.
            goal: what it is told to do from there.
            id: what the fork is called; chosen where none is given.
            accept_changed_tools: as for `resume`.
            without_secrets: as for `start`.

        Raises:
            UnknownSessionError: there is no such session.
            RejectedError: it has no such version, or there is a session of that id.
            ConfigError: the workspace is on another machine or cannot be copied, or what
                `resume` says.
            ToolChangedError: a tool has changed; accept that, or put it back.
            ToolImportError: make the tool importable again.
            CorruptEventError: the past was damaged or emptied up to there.
        """
        request = await fork_request(
            self,
            await self.find(session),
            at=at,
            goal=goal,
            id=id,
            accept_changed_tools=accept_changed_tools,
            accept_with=f"await runtime.fork({session!r}, at={at}, accept_changed_tools=True)",
            without_secrets=without_secrets,
        )
        return await request.submit(self)

    async def rerun(
        self,
        session: str,
        agent: Agent | str | PathLike[str] | None = None,
        *,
        run_tools: bool = False,
        id: str | None = None,  # noqa: A002 - the word of the log
        without_secrets: Collection[str] = (),
    ) -> RerunResult:
        """Run a session's past again with another agent, wait until it rests, and compare.

        The model's replies and the results of the calls come from the log, so it costs nothing.
        The people's messages are sent again before the turns that they came before.

        Args:
            session: whose past it is.
            agent: whose instructions, tools, rules and limits apply, or the path of its file;
                the recorded agent where none is given.
            run_tools: run calls without a recorded result, as far as the agent's rules allow it;
                then people are asked as usual. Without it, such a call ends the rerun.
            id: what the rerun is called; chosen where none is given.
            without_secrets: as for `start`.

        Raises:
            UnknownSessionError: there is no such session.
            RejectedError: it has no reply to repeat, or there is a session of that id.
            ConfigError: mend the setting, file or variable it names; nothing was recorded.
            ToolImportError: make the tool importable.
            CorruptEventError: the past was damaged or emptied.
        """
        request = await rerun_request(
            self,
            await self.find(session),
            agent=agent,
            run_tools=run_tools,
            id=id,
            without_secrets=without_secrets,
        )
        started = await request.submit(self)
        await started.result()
        return await self.rerun_result(started.id)


@asynccontextmanager
async def open_client(
    path: LogName = DEFAULT_LOG, *, must_exist: bool = True
) -> AsyncIterator[Client]:
    """Open the log at *path* without a place for its sessions: what is asked is recorded.

    Raises:
        LogUnavailableError: the log cannot be used; the message says what to do.
        LogFormatError: another format wrote it.
    """
    async with open_log(path, must_exist=must_exist) as log:
        yield Client(log, Place(log.url))
