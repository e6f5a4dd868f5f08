"""The client of one log: sends messages, starts sessions, and answers questions."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Collection, Mapping, Sequence
from contextlib import asynccontextmanager
from inspect import iscoroutine
from os import PathLike

from pydantic import JsonValue

from cueline.actors.breaker_reset import reset_breaker
from cueline.actors.fleet_log import FleetLog
from cueline.actors.fold import SessionCache
from cueline.agents.agent import Agent
from cueline.client import proposals
from cueline.client.fleet import Count, ScaleReceipt, scale
from cueline.client.fork import fork_request
from cueline.client.inputs import Attachable, Output
from cueline.client.reader import Reader
from cueline.client.remote import at_server
from cueline.client.rerun import RerunResult, rerun_request
from cueline.client.resume import resume_request
from cueline.client.runs import retry, submit
from cueline.client.schedule import At, Every
from cueline.client.session import Result, Session
from cueline.client.session_by_name import of_asking, of_named
from cueline.client.start import StartOptions, start_request
from cueline.config.config_file import DEFAULT_LOG
from cueline.errors import CuelineError
from cueline.events.log_url import LogName
from cueline.events.start import QUEUE_SECONDS
from cueline.runtime.open_log import OpenLog, open_log
from cueline.runtime.place import Place


class Client(Reader):
    """An open log for requests and questions, and the place of its sessions."""

    def __init__(self, log: OpenLog, place: Place) -> None:
        super().__init__(log)
        self.place = place
        self.cache = SessionCache(log.journal())
        self.fleet_log = FleetLog(log.journal())

    send = of_named(Session.send)
    switch_model = of_named(Session.switch_model)
    pause = of_named(Session.pause)
    raise_limits = of_named(Session.raise_limits)
    stop = of_named(Session.stop)
    approve = of_asking(Session.approve)
    deny = of_asking(Session.deny)
    propose = at_server(proposals.propose)
    commit_proposal = at_server(proposals.commit_proposal)
    reject_proposal = at_server(proposals.reject_proposal)
    undo_proposal = at_server(proposals.undo_proposal)

    def session(self, id: str) -> Session:  # noqa: A002 - the word of the log
        """Return the session with that id or stream, to read it or to send messages to it.

        Nothing is read yet: a missing session is an error at its first use.

        Raises:
            InvalidNameError: the id has an invalid form.
        """
        return Session(self, self.log.session_stream(id), name=id)

    @at_server
    async def reset_breaker(self, name: str, by: str | None = None) -> bool:
        """Close a circuit breaker: its calls are sent again. False: it was closed already.

        Args:
            name: the breaker's name, as in `cueline breakers`.
            by: the person who resets it; by default the login of this process.

        Raises:
            RejectedError: there is no such breaker.
            LogUnavailableError: the log cannot be used; see the message.
        """
        self.log.check_may("admin")
        user, now = by or self.log.user, self.log.clock.now()
        return await reset_breaker(self.log.journal(), name, user, now)

    @at_server
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
        *resources*. This sets the number of one group of each named kind, and of no other group.
        The number is recorded, so it also counts if no `cueline up` runs.

        Args:
            hosts: the number of hosts, or the minimum and maximum. Hosts above the minimum start
            when sessions wait for a place, and retire when they are idle.
            runners: the number of runners, or the minimum and maximum.
            per_node: the most workers of the group on one node.
            labels: only nodes with these labels in Ray; tools can demand them.
            resources: the resources that each takes: `cpus`, `gpus`, `memory` in bytes, or a
            resource of Ray's by its name; tools can demand them.
            by: the person who asks; by default the login of this process.

        Raises:
            ConfigError: a number, label or resource is invalid; nothing was recorded.
            LogUnavailableError: the log cannot be used; see the message.
        """
        self.log.check_may("admin")
        return await scale(
            self.log,
            {"host": hosts, "runner": runners},
            per_node=per_node,
            labels=labels or {},
            resources=resources or {},
            by=by or self.log.user,
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
        """Record a new session of *agent*, and return it.

        A `Runtime` runs the session at its place. With a plain `Client`, a running `cueline up`
        runs it. If a session with *key* exists, it is returned instead.

        *agent* is an agent, or the path of its file. `StartOptions` describes the other options.

        The login of this process is recorded as the requester. A rule can forbid the requester
        to approve the calls of the session.

        If this call is cancelled, the session may be recorded. If you gave an id, call `resume`:
        it runs the session, or reports that it does not exist.

        Raises:
            ParameterValidationError: the parameters do not fit the schema; the error contains it.
            ConfigError: correct the setting, file or variable that the message names; nothing was
                recorded.
            ToolImportError: make the tool importable where it will run.
            InvalidNameError: the id, or the id of the parent, has an invalid form.
            RejectedError: the id is taken, the tree is too deep or too large, or the key was
                used for another start.
            UnknownSessionError: there is no such parent.
            SessionFinishedError: the parent has ended.
            UnknownOutcomeError: the session may be recorded. With an id, `resume` it; with a key,
                call `start` again.
            LogUnavailableError: the log cannot be used; see the message.
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
        self.log.check_may("admin")
        request = start_request(agent, options, now=self.log.clock.now(), user=self.log.user)
        return await request.submit(self)

    @at_server
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

        The run waits until a runner with the blueprint claims it; its calls go to that runner.

        *blueprint* is a name from `blueprints`; an agent with a model and without parameters needs
        a *goal*. The run waits *queue_seconds* for a runner, from its start time on, and then
        fails; with 0 the run is refused now if no runner is online. The other options of the run
        are the fields of `StartOptions`.

        Raises:
            RejectedError: that name was never offered, or the parameters do not fit; the message
            has their schema. Nothing was recorded.
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

    @at_server
    async def retry(self, run: str) -> Session:
        """Start an ended run again: a new session with the same goal, parameters and labels.

        Its link `retry_of` names the earlier run.

        Raises:
            UnknownSessionError: there is no such session.
            RejectedError: the session is not a run, has not ended, or `submit` rejects it.
            ConfigError: see `submit`.
        """
        return await retry(self, await self.find(run))

    async def gather(self, *sessions: Session | Awaitable[Session]) -> list[Result]:
        """Start sessions, wait for all, and return their results in order, also of failed ones.

        Args:
            sessions: sessions, or results of `start` that are not awaited yet.

        Raises:
            CuelineError: as `start` and `Session.result` raise it. If a start fails, a note of
            the error names the sessions that were started earlier; these continue.
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
                left.close()  # else Python warns that it was never awaited
        return list(await asyncio.gather(*[each.result() for each in begun]))

    @at_server
    async def resume(
        self,
        id: str,  # noqa: A002 - the word of the log
        *,
        accept_changed_tools: bool = False,
        without_secrets: Collection[str] = (),
    ) -> Session:
        """Continue a session that crashed, was paused or interrupted.

        Args:
            id: the session's id or stream.
            accept_changed_tools: continue with the current form of tools that have changed since
            they were recorded; this is recorded.
            without_secrets: as for `start`.

        Raises:
            InvalidNameError: the id has an invalid form.
            UnknownSessionError: there is no such session.
            SessionFinishedError: the session has ended; fork it, or start another.
            SessionOwnedError: another living process drives the session, and it is not paused; use
            `session(id)` to send it messages.
            ConfigError: correct the setting, folder or variable that the message names; nothing
            was recorded.
            ToolChangedError: a tool has changed; accept or restore it; nothing was recorded.
            ToolImportError: make the tool importable again; nothing was recorded.
            UnknownOutcomeError: resume it again.
            LogUnavailableError: the log cannot be used; see the message.
        """
        request = await resume_request(
            self,
            await self.find(id),
            accept_changed_tools=accept_changed_tools,
            accept_with=f"await runtime.resume({id!r}, accept_changed_tools=True)",
            without_secrets=without_secrets,
        )
        return await request.submit(self)

    @at_server
    async def fork(
        self,
        session: str,
        *,
        at: int,
        goal: str | None = None,
        id: str | None = None,  # noqa: A002 - the word of the log
        with_files: bool = False,
        accept_changed_tools: bool = False,
        without_secrets: Collection[str] = (),
    ) -> Session:
        """Start a session that shares another's past up to a version, and continues from there.

        The fork has none of the calls in flight. Its workspace is a copy, made now, in a folder
        beside the original; a message says so to the model.

        Args:
            session: the session whose past the fork shares.
            at: the last version of the shared past, from `Session.events`.
            goal: the goal of the fork.
            id: the id of the fork; by default a random one.
            with_files: its sandbox begins with the files that the session's sandbox had then;
            otherwise with those of the workspace.
            accept_changed_tools: as for `resume`.
            without_secrets: as for `start`.

        Raises:
            UnknownSessionError: there is no such session.
            RejectedError: the session has no such version, the id is taken, or the files are not
            kept.
            ConfigError: the workspace is on another machine or cannot be copied; or as for
            `resume`.
            ToolChangedError: a tool has changed; accept or restore it.
            ToolImportError: make the tool importable again.
            CorruptEventError: the past up to that version was damaged or emptied.
        """
        request = await fork_request(
            self,
            await self.find(session),
            at=at,
            goal=goal,
            id=id,
            with_files=with_files,
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
        """Run a recorded session again with another agent, wait until it rests, and compare.

        The model's replies and the results of the calls come from the log, so a rerun costs
        nothing. The people's messages are sent again before the same turns.

        Args:
            session: the recorded session.
            agent: the agent whose instructions, tools, rules and limits apply, or the path of its
            file; by default the recorded agent.
            run_tools: run calls without a recorded result, if the agent's rules allow them; people
            are then asked as usual. Without it, such a call ends the rerun.
            id: the id of the rerun; by default a random one.
            without_secrets: as for `start`.

        Raises:
            UnknownSessionError: there is no such session.
            RejectedError: the session has no reply to repeat, or the id is taken.
            ConfigError: correct the setting, file or variable that the message names; nothing was
                recorded.
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
    """Open the log at *path* without a place for its sessions: requests are only recorded.

    Raises:
        LogUnavailableError: the log cannot be used; the message says what to do.
        LogFormatError: another format wrote it.
    """
    async with open_log(path, must_exist=must_exist) as log:
        yield Client(log, Place(log.url))
