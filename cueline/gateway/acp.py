"""Serves the Agent Client Protocol to an editor, over standard input and output."""

import base64
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from functools import wraps
from importlib.metadata import version
from pathlib import Path
from typing import Any, ParamSpec, TypeVar

from acp import PROTOCOL_VERSION, RequestError
from acp.schema import (
    AgentCapabilities,
    CloseSessionResponse,
    EmbeddedResourceContentBlock,
    ForkSessionResponse,
    ImageContentBlock,
    Implementation,
    InitializeResponse,
    ListSessionsResponse,
    LoadSessionResponse,
    NewSessionResponse,
    PromptCapabilities,
    PromptResponse,
    ResourceContentBlock,
    ResumeSessionResponse,
    SessionCapabilities,
    SessionCloseCapabilities,
    SessionForkCapabilities,
    SessionInfo,
    SessionListCapabilities,
    SessionResumeCapabilities,
    TextContentBlock,
    TextResourceContents,
)

from cueline.client.client import Client
from cueline.client.session import Session
from cueline.client.start import StartOptions, StartRequest, name_of
from cueline.errors import ConfigError, CuelineError, RejectedError, UnknownSessionError
from cueline.gateway.acp_session import EditorSession, Start

P = ParamSpec("P")
T = TypeVar("T")
LISTED = 200
"""The most sessions of a list, the last changed first."""


_CODES = {UnknownSessionError: -32002, ConfigError: -32602, RejectedError: -32602}
Prepare = Callable[[Path, StartOptions], Awaitable[StartRequest]]
"""Checks the start of a session whose agent works in a folder, and returns it."""


def _answers(
    method: Callable[P, Awaitable[T]],
) -> Callable[P, Awaitable[T]]:
    """Return *method* with cueline's errors as errors of the protocol."""

    @wraps(method)
    async def answer(*given: P.args, **named: P.kwargs) -> T:
        try:
            return await method(*given, **named)
        except CuelineError as error:
            code = next((code for kind, code in _CODES.items() if isinstance(error, kind)), -32603)
            raise RequestError(code, str(error), {"type": type(error).__name__}) from error

    return answer


class EditorAgent:
    """The agent's side of the protocol: each session of an editor is a session of the log."""

    def __init__(self, client: Client, prepare: Prepare, say: Callable[[str], None]) -> None:
        self.say = say
        self._client = client
        self._prepare = prepare
        self._sessions: dict[str, EditorSession] = {}
        self._editor: Any = None

    def on_connect(self, conn: Any) -> None:
        """Take the connection to the editor."""
        self._editor = conn

    async def close(self) -> None:
        """Follow no session any more."""
        for each in self._sessions.values():
            await each.close()

    @_answers
    async def initialize(self, **_: Any) -> InitializeResponse:
        """Name the version of the protocol and the methods that work here."""
        return InitializeResponse(
            protocol_version=PROTOCOL_VERSION,
            agent_info=Implementation(name="cueline", title="cueline", version=version("cueline")),
            agent_capabilities=AgentCapabilities(
                load_session=True,
                prompt_capabilities=PromptCapabilities(image=True, embedded_context=True),
                session_capabilities=SessionCapabilities(
                    list=SessionListCapabilities(),
                    resume=SessionResumeCapabilities(),
                    fork=SessionForkCapabilities(),
                    close=SessionCloseCapabilities(),
                ),
            ),
        )

    @_answers
    async def new_session(
        self, cwd: str, mcp_servers: Sequence[object] | None = None, **_: Any
    ) -> NewSessionResponse:
        """Check a new session; the first prompt records its start."""
        if mcp_servers:
            self.say(
                "cueline does not use the editor's MCP servers: name tools in the agent's file"
            )
        folder = Path(cwd)
        if not folder.is_absolute():
            raise ConfigError("cwd", f"{cwd!r} is no absolute path")
        options = StartOptions(goal="", open=True)
        name = (await self._prepare(folder, options)).id

        async def start(text: str, files: Sequence[bytes]) -> Session:
            told = replace(options, goal=text, id=name, attachments=files)
            return await (await self._prepare(folder, told)).submit(self._client)

        return NewSessionResponse(session_id=self._add(name, start))

    @_answers
    async def load_session(self, session_id: str, **_: Any) -> LoadSessionResponse:
        """Send the whole session from the log, and go on with an interrupted turn."""
        await self._open(session_id, shown=True)
        return LoadSessionResponse()

    @_answers
    async def resume_session(self, session_id: str, **_: Any) -> ResumeSessionResponse:
        """Open a session without its past, and go on with an interrupted turn."""
        await self._open(session_id, shown=False)
        return ResumeSessionResponse()

    @_answers
    async def fork_session(self, session_id: str, **_: Any) -> ForkSessionResponse:
        """Fork a session at its newest event; the first prompt records the fork as its goal."""
        head = await self._client.log.store.head(await self._client.find(session_id))
        name = name_of(None, None)

        async def start(text: str, files: Sequence[bytes]) -> Session:
            if files:
                raise ConfigError("prompt", "the first prompt of a fork takes no files")
            return await self._client.fork(session_id, at=head.version, goal=text, id=name)

        return ForkSessionResponse(session_id=self._add(name, start))

    @_answers
    async def list_sessions(self, cwd: str | None = None, **_: Any) -> ListSessionsResponse:
        """List the newest sessions without a parent; with *cwd* those whose agent works there."""
        found = []
        for row in (await self._client.sessions(limit=LISTED)).rows:
            if row.parent is not None:
                continue
            place = (await self._client.start_request(row.id)).agent.workspace
            folder = "/" if place is None else place.path
            if cwd is None or Path(cwd) == Path(folder):
                found.append(
                    SessionInfo(
                        session_id=row.id,
                        cwd=folder,
                        title=row.goal or row.agent,
                        updated_at=row.updated_at.isoformat(),
                    )
                )
        return ListSessionsResponse(sessions=found)

    @_answers
    async def close_session(self, session_id: str, **_: Any) -> CloseSessionResponse:
        """Cancel the turn of a session, and follow the session no more."""
        if (session := self._sessions.pop(session_id, None)) is not None:
            await session.cancel()
            await session.close()
        return CloseSessionResponse()

    @_answers
    async def prompt(self, prompt: Sequence[Any], session_id: str, **_: Any) -> PromptResponse:
        """Send a message to the session, and wait until the session rests."""
        session = self._sessions.get(session_id) or await self._open(session_id, shown=False)
        return PromptResponse(stop_reason=await session.prompt(*prompt_of(prompt)))

    @_answers
    async def cancel(self, session_id: str, **_: Any) -> None:
        """End the turn of the session; the next prompt goes on."""
        if (session := self._sessions.get(session_id)) is not None:
            await session.cancel()

    def _add(self, name: str, start: Start) -> str:
        self._sessions[name] = EditorSession(self._client, self._editor, name, self.say, start)
        return name

    async def _open(self, name: str, *, shown: bool) -> EditorSession:
        """Read a session from the log; if *shown*, send all its updates.

        Raises:
            UnknownSessionError: there is no such session.
        """
        if (before := self._sessions.pop(name, None)) is not None:
            await before.close()
        session = EditorSession(self._client, self._editor, name, self.say)
        await session.read(shown=shown)
        self._sessions[name] = session
        return session


def prompt_of(blocks: Sequence[Any]) -> tuple[str, list[bytes]]:
    """Return the text and the files of a prompt.

    Raises:
        ConfigError: a block is of a kind that was not offered.
    """
    texts, files = [], []
    for block in blocks:
        match block:
            case TextContentBlock(text=text):
                texts.append(text)
            case ResourceContentBlock(name=name, uri=uri):
                texts.append(f"[{name}]({uri})")
            case EmbeddedResourceContentBlock(resource=TextResourceContents(uri=uri, text=text)):
                texts.append(f'\n<file uri="{uri}">\n{text}\n</file>\n')
            case EmbeddedResourceContentBlock(resource=resource):
                files.append(base64.b64decode(resource.blob))
            case ImageContentBlock(data=data):
                files.append(base64.b64decode(data))
            case _:
                raise ConfigError("prompt", f"a block of kind {block.type!r} is not taken")
    return "".join(texts), files
