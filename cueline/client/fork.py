"""Forks a session: starts another that shares its past up to a version."""

import asyncio
import shutil
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from cueline.actors.inbox import check_asked_for, new_id
from cueline.actors.presence import machine_name
from cueline.actors.sandbox_life import sandbox_of
from cueline.actors.sandbox_port import LOG_LABEL, NAME_LABEL, SESSION_LABEL, SandboxForks
from cueline.actors.session_reader import SessionReader
from cueline.agents.preflight import check_resumed
from cueline.agents.secret import waiver
from cueline.client.argument_check import make_value
from cueline.client.context import Connection
from cueline.client.remote import RemoteRequest
from cueline.client.session import Session
from cueline.client.start import StartRequest, check_id_is_free
from cueline.config.settings import APPROVAL_SECONDS
from cueline.deciders.policy_fault import faults
from cueline.deciders.session import SessionState
from cueline.deciders.session.current_agent import with_tools
from cueline.errors import (
    ConfigError,
    CuelineError,
    RejectedError,
    SandboxError,
    SandboxGoneError,
    UnknownOutcomeError,
)
from cueline.events.agent import AgentSpec
from cueline.events.inbox import ForkPoint, StartAsked
from cueline.events.sandbox import SandboxSpec
from cueline.events.session import ToolFailed, ToolReturned
from cueline.events.stream import shown
from cueline.stores.backend import LogBackend
from cueline.tools.sandbox import sandbox_backend

_NOTE = (
    "This session was forked from another. Its workspace is a copy of that session's "
    "folder, made at the fork from the files as they were then; they may differ from "
    "what was said before."
)


_FRESH = (
    "This session was forked from another. It works in a fresh sandbox: what the other session "
    "changed in files is not there."
)


@dataclass(frozen=True, slots=True)
class FilesAt:
    """The files of a session's sandbox after a call."""

    spec: SandboxSpec
    place: str
    effect: str
    """The call."""

    def give_to(self, log_id: str, session: str) -> None:
        """Make the first sandbox of *session* with these files.

        Raises:
            RejectedError: they are not there any more.
        """
        backend = sandbox_backend(self.spec.backend)
        if not isinstance(backend, SandboxForks):
            why = f"a sandbox of the back-end {self.spec.backend} keeps no files for forks"
            raise RejectedError(shown(session), why)
        name = sandbox_of(session, 1)
        labels = {LOG_LABEL: log_id, NAME_LABEL: name, SESSION_LABEL: session}
        try:
            backend.fork(self.place, self.effect, labels)
        except SandboxGoneError:
            why = "its sandbox is gone: only a session that has not ended has one"
            raise RejectedError(shown(session), f"it cannot have the files: {why}") from None
        except SandboxError as error:
            raise RejectedError(shown(session), error.reason) from error


@dataclass(frozen=True, slots=True)
class ForkRequest:
    """A checked fork that is not recorded or copied yet."""

    start: StartRequest
    files: "FilesAt | None" = None
    """The files of a sandbox that the fork gets; None: it gets none."""

    @property
    def id(self) -> str:
        """The id of the fork."""
        return self.start.id

    @property
    def agent(self) -> AgentSpec:
        """The agent of the fork."""
        return self.start.asked.agent

    def with_time_to_answer(self, seconds: float) -> "ForkRequest":
        """Return the fork with this waiting time of questions, unless the agent's file has one."""
        agent, asked = self.agent, self.start.asked
        policy = agent.policy.model_copy(update={"approval_seconds": seconds})
        # A reminder, or the grant that comes by itself, may come too late then.
        if APPROVAL_SECONDS in agent.limit_sources or any(faults(policy)):
            return self
        asked = asked.model_copy(update={"agent": agent.model_copy(update={"policy": policy})})
        return replace(self, start=replace(self.start, asked=asked))

    async def submit(self, client: Connection) -> Session:
        """Copy the workspace, record the fork, and run it at the place of *client*.

        Raises:
            RejectedError: the id is taken.
            ConfigError: the folder is on another machine, or cannot be copied.
        """
        asked = self.start.asked
        await check_id_is_free(client.log, self.start.id)
        stream = client.log.session_stream(self.start.id)
        if self.files is not None:
            await asyncio.to_thread(self.files.give_to, client.log.id, stream)
        with copied(
            asked.agent, self.start.id, client.log.backend, has_files=self.files is not None
        ) as (agent, note):
            moved = asked.model_copy(update={"agent": agent, "note": note})
            return await replace(self.start, asked=moved).submit(client)


async def fork_request(
    client: Connection,
    stream: str,
    *,
    at: int,
    goal: str | None = None,
    id: str | None = None,  # noqa: A002 - the word of the log
    with_files: bool = False,
    accept_changed_tools: bool = False,
    accept_with: str,
    without_secrets: Collection[str] = (),
    attached: bool = False,
) -> ForkRequest | RemoteRequest:
    """Check a fork, and return it. See `Client.fork`, which raises the same errors.

    *accept_with* is the option that accepts changed tools; *attached*: a person is at a
    terminal, and is asked there.
    """
    name = new_id() if id is None else id
    await check_id_is_free(client.log, name)
    if client.log.server is not None:
        said = {"session": shown(stream), "at": at, "goal": goal, "id": name}
        said |= {"accept_changed_tools": accept_changed_tools, "with_files": with_files}
        return RemoteRequest(client.log.session_stream(name), "fork", said)
    point, agent, open_, files = await _past(client, stream, at)
    if with_files and files is None:
        why = "it has changed no files in a sandbox until then: fork it without files"
        raise RejectedError(shown(stream), why)
    if agent.plan is not None:
        why = "it follows a plan, whose past cannot be forked: start another session"
        raise RejectedError(shown(stream), why)
    tools = check_resumed(
        agent,
        client.log.url,
        waived=without_secrets,
        accept_changed_tools=accept_changed_tools,
        accept_with=accept_with,
    )
    user = client.log.user
    agent = with_tools(agent, tools).model_copy(update={"key_owner": user})
    asked = make_value(
        StartAsked,
        agent=agent,
        goal=goal,
        open=open_,
        attached=attached,
        fork_of=point,
        asked_by=user,
        asked_at=client.log.clock.now(),
    )
    start = StartRequest(name, asked, waiver(agent, without_secrets, user))
    return ForkRequest(start, files if with_files else None)


async def _past(
    client: Connection, stream: str, at: int
) -> tuple[ForkPoint, AgentSpec, bool, FilesAt | None]:
    """Return the fork's place in its parent, the agent at *at*, and whether the parent stays open.

    Also the files of its sandbox then; None if no call has worked in one.

    Each event up to *at* is checked.
    """
    if not isinstance(at, int) or at < 1:
        raise ConfigError("at", f"{at!r} is no version; a version is a whole number from 1")
    await check_asked_for(client.log.store, stream)
    session_reader, found = SessionReader(stream, client.log.journal()), None
    files: FilesAt | None = None
    async for recorded, fact in session_reader.read(at):
        found = recorded
        if isinstance(fact, ToolReturned | ToolFailed):
            files = _files_after(session_reader.state, fact.effect) or files
    if found is None or found.version < at:
        last = (await client.log.store.head(stream)).version
        raise RejectedError(shown(stream), f"there is no version {at}; its last is {last}")
    if session_reader.emptied is not None:
        raise session_reader.emptied
    state = session_reader.state
    if state.progress is not None:
        raise RejectedError(shown(stream), "it follows a plan, which has no forks: start it again")
    assert state.setup is not None, "the first fact of a session says what it is to do"
    point = ForkPoint(stream=stream, version=at, hash=found.hash.hex())
    # The limits as they were raised by then; nothing of them is spent yet.
    agent = state.agent.model_copy(update={"limits": state.limit_state.limits})
    return point, agent, state.setup.open, files


def _files_after(state: SessionState, effect: str) -> FilesAt | None:
    """Return the files of the sandbox after the call *effect*; None if it ran elsewhere."""
    call = state.call(effect)
    if call is None or state.setup is None or state.agent.sandbox is None:
        return None
    tool = state.setup.tools.get(call.tool)
    if tool is None or not tool.needs_workspace:
        return None
    return FilesAt(state.agent.sandbox, state.sandbox.place, effect)


@contextmanager
def copied(
    agent: AgentSpec,
    id: str,  # noqa: A002 - the word of the log
    log: LogBackend,
    *,
    has_files: bool = False,
) -> Iterator[tuple[AgentSpec, str | None]]:
    """Copy the workspace; yield the agent of the fork, and the note about the copy for its model.

    The note is None without a workspace, and for a fork that *has_files* of a sandbox. What only
    sandboxes see as an overlay is not copied. If the block fails, the copy is deleted, unless the
    fork may have been recorded.
    """
    place = agent.workspace
    if place is None or has_files:
        yield agent, None
        return
    if agent.sandbox is not None and agent.sandbox.backend == "local":
        yield agent, _FRESH
        return
    if place.machine != machine_name():
        raise ConfigError("the workspace", f"{place.path} is on {place.machine}; fork it there")
    copy = Path(f"{place.path}-{id}")
    _copy(Path(place.path), copy, log)
    moved = place.model_copy(update={"path": str(copy)})
    try:
        box = agent.sandbox and agent.sandbox.in_folder(str(copy))
        yield agent.model_copy(update={"workspace": moved, "sandbox": box}), _NOTE
    except UnknownOutcomeError:
        raise  # perhaps it is recorded, and works there
    except CuelineError:
        shutil.rmtree(copy)
        raise


def _copy(source: Path, copy: Path, log: LogBackend) -> None:
    if copy.exists():
        raise ConfigError(
            str(copy), "it is in the way of the workspace's copy; choose another --id"
        )
    try:
        shutil.copytree(source, copy, symlinks=True, ignore=partial(_files_of, log))
    except (OSError, shutil.Error) as error:
        shutil.rmtree(copy, ignore_errors=True)
        why = f"the workspace cannot be copied to {copy}: {error}"
        raise ConfigError(str(source), why) from error


def _files_of(log: LogBackend, folder: str, names: list[str]) -> list[str]:
    """Return the *names* in *folder* that belong to the log, which are not copied."""
    return [each for each in names if log.owns(Path(folder, each))]
