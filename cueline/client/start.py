"""Starts a session, after all checks."""

import hashlib
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from pydantic import JsonValue

from cueline.actors.inbox import new_id
from cueline.actors.session_owner import owner_of
from cueline.actors.session_tree import child_of, read_start_request
from cueline.agents.agent import Agent
from cueline.agents.preflight import agent_to_record, check_limits, check_resumed
from cueline.agents.secret import waiver
from cueline.client.argument_check import make_value
from cueline.client.context import Connection
from cueline.client.inputs import (
    Attachable,
    Output,
    attachments_of,
    checked_parameters,
    typed,
    with_output,
)
from cueline.client.receipt import receipt_of_start
from cueline.client.remote import start_at
from cueline.client.schedule import At, Every, schedule_of
from cueline.client.session import Session
from cueline.config.environment import user_name
from cueline.deciders.session.delegation import with_children
from cueline.errors import ConfigError, RejectedError
from cueline.events.agent import AgentSpec
from cueline.events.inbox import InboxMessage, MessageSent, SecretsWaived, StartAsked
from cueline.events.store import NO_STREAM
from cueline.events.stream import session_stream, shown, sibling, stream_name
from cueline.runtime.open_log import OpenLog


@dataclass(frozen=True, slots=True, kw_only=True)
class StartOptions:
    """The options of a new session, beside its agent."""

    goal: str | None = None
    """The first message to the agent; without a goal, the session is idle until a message."""
    open: bool = False
    """Whether it stays open for more messages after its goal, instead of ending."""
    id: str | None = None
    """The id, of letters a-z, digits, `.` and `-`; by default a random one."""
    key: str | None = None
    """The key; if a session with this key exists, it is returned instead of another. The id is
derived from the key."""
    labels: Mapping[str, str] | None = None
    """Labels, for `cueline list --label` and SQL."""
    parent: str | None = None
    """The id or stream of its parent: the cost of the child counts for the limits of all its
ancestors, and the parent's log records the start, the outcome and the cost of the child."""
    without_secrets: tuple[str, ...] = ()
    """Secrets of the agent that may be unknown to its host: texts with their values are recorded
unchanged. The names are recorded with the person. Not for a blueprint."""
    output: Output | None = None
    """A pydantic model or a JSON schema for the agent's last reply, instead of the agent's own.
The schema is recorded, and is part of the instructions. Not for a blueprint."""
    attachments: Sequence[Attachable] = ()
    """Images and files for the goal: see `Session.send`."""
    parameters: Mapping[str, JsonValue] | None = None
    """The parameters, by the agent's `parameters_schema`; its defaults are filled in."""
    texts: Mapping[str, str] | None = None
    """More parameters as texts, each JSON or a text."""
    at: At | None = None
    """The time of the start, if not now: a `datetime`, or a text such as `07:30`,
`2026-05-04T07:30` or `+10m`. After missed times, one session starts late."""
    every: Every | None = None
    """The interval in seconds after which another such session starts, and so on; also a
`timedelta`, or a text such as `4h`. Stop the waiting session to end the series."""


@dataclass(frozen=True, slots=True)
class StartRequest:
    """A checked start that is not recorded yet."""

    id: str
    asked: StartAsked
    waived: SecretsWaived | None = None
    """The secrets without which the session may continue."""
    parent: str | None = None
    """The id or stream of the parent; None without a parent."""
    output: Output | None = None
    """The schema of the agent's last reply."""
    messages: Sequence[MessageSent] = ()
    """Messages for later turns, recorded with the start."""
    key: str | None = None
    """The key, with which one session is started."""

    async def submit(self, client: Connection) -> Session:
        """Record the start, and run the session at the place of *client*.

        Raises:
            ConfigError: its tools would reach the log, or its parent's limits cannot be kept.
            RejectedError: the id is taken, or the tree is too deep or too large.
            ToolImportError: a runner of the cluster cannot run its tools.
            UnknownSessionError: there is no such parent.
            SessionFinishedError: the parent has ended.
        """
        client.log.check_may("send")
        stream, asked = client.log.session_stream(self.id), self.asked
        if (server := client.log.server) is not None:
            remote = await start_at(server, self)
            return Session(client, stream, remote, (self.output or asked.agent.output,))
        parent = None if self.parent is None else client.log.session_stream(self.parent)
        if self.key is not None and await exists(client.log, stream):
            return await self._session_of_key(client, stream, parent)
        if parent is not None:
            asked = await child_of(client.cache, parent, asked)
            check_limits(asked.agent, asked.allowances)
        await client.place.check_tools(with_children(asked.agent))
        with_it: list[InboxMessage] = [] if self.waived is None else [self.waived]
        with_it += self.messages
        try:
            by = f"user:{client.log.user}"
            await client.log.ask_start(self.id, asked, by=by, with_it=with_it)
        except RejectedError:
            if self.key is None or not await exists(client.log, stream):
                raise
            # Another asked at the same time.
            return await self._session_of_key(client, stream, parent)
        await client.place.take_up(stream, asked.parent)
        receipt = await receipt_of_start(client, stream, asked)
        return Session(client, stream, receipt, (self.output or asked.agent.output,))

    async def _session_of_key(self, client: Connection, stream: str, parent: str | None) -> Session:
        """Return the earlier session with its key; run it here if no living process does.

        Raises:
            RejectedError: the key was used for another start.
        """
        log = client.log
        before = await read_start_request(log.journal(), stream)
        asked = {
            "agent": (before.agent.name, self.asked.agent.name),
            "goal": (before.goal, self.asked.goal),
            "parameters": (before.parameters, self.asked.parameters),
            "parent": (before.parent, parent),
            "interval": (_interval(before), _interval(self.asked)),
        }
        for what, (then, now) in asked.items():
            if then != now:
                reason = f"the key {self.key!r} started it with another {what}; choose another key"
                raise RejectedError(shown(stream), reason)
        receipt = replace(await receipt_of_start(client, stream, before), recorded=False)
        owner = await owner_of(log.store, log.board, stream, log.clock.now())
        if owner is None:
            await client.place.take_up(stream, before.parent)
        return Session(client, stream, receipt, (self.output or before.agent.output,))


def _interval(asked: StartAsked) -> float | None:
    return None if asked.schedule is None else asked.schedule.every_seconds


def id_of_key(key: str) -> str:
    """Return the id that is derived from *key*."""
    return f"key-{hashlib.sha256(key.encode()).hexdigest()[:16]}"


def start_request(
    agent: Agent | str | os.PathLike[str],
    options: StartOptions,
    *,
    now: datetime,
    user: str | None = None,
    attached: bool = False,
    sources: Mapping[str, str] | None = None,
) -> StartRequest:
    """Check the start of a session without the log, and return it.

    *now* is the time of the request; *user* asks for it, by default that of this process;
    *attached*: a person is at a terminal, and is asked there; *sources* are the known sources
    of the agent's limits.

    Raises:
        ParameterValidationError: the parameters do not fit the agent's schema.
        ConfigError: correct the value, setting, file or variable that the message names.
        ToolImportError: make the tool importable where it will run.
        InvalidNameError: the id, or the id of the parent, has an invalid form.
    """
    waived, user = options.without_secrets, user or user_name()
    spec = agent_to_record(with_output(agent_of(agent), options.output), waived=waived)
    if options.open and spec.plan is not None:
        why = f"{spec.name} follows a plan, so no model reads messages; leave it out"
        raise ConfigError("open", why)
    secrets = waiver(spec, waived, user)
    if options.parent is not None and options.every is not None:
        raise ConfigError("every", "a series has no parent: leave one out")
    spec = spec.model_copy(update={"limit_sources": dict(sources or {}), "key_owner": user})
    return request_of(spec, options, now, user=user, waived=secrets, attached=attached)


def request_of(
    spec: AgentSpec,
    options: StartOptions,
    now: datetime,
    *,
    user: str,
    waived: SecretsWaived | None = None,
    **more: object,
) -> StartRequest:
    """Return the start by *user* of a session of *spec*; *more* are fields of `StartAsked`.

    Raises the errors of `start_request`.
    """
    name = name_of(options.id, options.key)
    texts = typed(options.texts or {}, spec.parameters_schema)
    asked = make_value(
        StartAsked,
        agent=spec,
        goal=options.goal,
        attachments=attachments_of(options.attachments),
        parameters=checked_parameters(spec, {**(options.parameters or {}), **texts}),
        open=options.open,
        labels=options.labels or {},
        schedule=schedule_of(options.at, options.every, now, stream_name("session", name)),
        asked_by=user,
        asked_at=now,
        **more,
    )
    if options.parent is not None:
        session_stream(options.parent)  # its form is checked before anything is recorded
    return StartRequest(
        name, asked, waived, parent=options.parent, output=options.output, key=options.key
    )


def check_recorded(log: OpenLog, request: StartRequest) -> StartRequest:
    """Check here a start that another machine has checked, and return it by the log's person.

    Raises:
        ForbiddenError: the agent could run any command here, which needs the scope `admin`.
        ConfigError: correct the value, setting, folder or variable that the message names.
        ToolChangedError: the tool is another one here.
        ToolImportError: make the tool importable here.
    """
    log.check_may("admin")
    asked, waived = request.asked, request.waived
    check_resumed(
        asked.agent,
        log.url,
        waived=() if waived is None else waived.names,
        accept_changed_tools=False,
        accept_with="the same files on both machines",
    )
    user = log.user
    agent = asked.agent.model_copy(update={"key_owner": user})
    by = {"agent": agent, "asked_by": user, "asked_at": log.clock.now()}
    secrets = None if waived is None else waived.model_copy(update={"by": user})
    return replace(request, asked=asked.model_copy(update=by), waived=secrets)


def name_of(id: str | None, key: str | None) -> str:  # noqa: A002 - the word of the log
    """Return the id for a start; a random id without *id* and *key*.

    Raises:
        ConfigError: both an id and a key are given.
    """
    if key is not None and id is not None:
        raise ConfigError("key", "it chooses the session's id: leave the id out")
    if key is not None:
        return id_of_key(key)
    return new_id() if id is None else id


def agent_of(given: object) -> Agent:
    """Return the agent *given* as an object or as the path of its file.

    Raises:
        ConfigError: *given* is neither, or the file is wrong.
    """
    match given:
        case Agent():
            return given
        case str() | os.PathLike():
            return Agent.from_file(given)
        case _:
            why = f"{given!r} is neither an Agent nor the path of an agent file"
            raise ConfigError("agent", why)


async def exists(log: OpenLog, stream: str) -> bool:
    """Whether a session exists or was requested."""
    return (await log.store.head(sibling(stream, "inbox"))).version != NO_STREAM


async def check_id_is_free(log: OpenLog, id: str) -> None:  # noqa: A002 - the word of the log
    """Refuse an id that is taken.

    Raises:
        RejectedError: the id is taken; choose another.
        InvalidNameError: the id has an invalid form.
    """
    stream = log.session_stream(id)
    if await exists(log, stream):
        raise RejectedError(shown(stream), "a session with this id exists")
