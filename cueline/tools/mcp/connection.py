"""A connection to an MCP server, opened when it is needed, and again after it was lost.

A call that was not sent fails as not started, so the rules try it again with growing waits. A
call whose connection ends before its result is lost: it may have had effects (I5).
"""

import asyncio
import logging
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import AsyncExitStack, suppress
from pathlib import Path
from typing import Any, Final, TypeVar, cast

import httpx2
from mcp import Client, MCPError
from mcp.client.extension import ClientExtension
from mcp.client.stdio import StdioServerParameters, get_default_environment, stdio_client
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.dispatcher import ProgressFnT
from mcp_types import (
    CONNECTION_CLOSED,
    CallToolResult,
    Request,
    RequestParamsMeta,
    Result,
    ToolListChangedNotification,
)
from pydantic import ValidationError

from cueline.errors import ConfigError, ToolFailedError
from cueline.events.agent import ToolSpec
from cueline.events.agent_parts import DEFAULT_ISOLATION, Isolation, McpServer, with_values
from cueline.events.codes import NOT_STARTED
from cueline.tools import guardian
from cueline.tools.mcp.definition import name_for_model, specs_of, tool_in
from cueline.tools.mcp.oauth import Logins, StoredOAuth, login_page
from cueline.tools.mcp.open_connection import OpenConnection, not_now
from cueline.tools.mcp.reading import AnswerParams, every, read, readers_of, unused
from cueline.tools.mcp.server_sandbox import server_sandbox
from cueline.tools.mcp.transport import TRACE, WatchedHttp, last_words_file, watched

_LINES: Final = 5
_OF_TRANSPORT: Final = {"Session terminated", "Server returned an error response", "Not Found"}
"""What the SDK says in place of an answer whose HTTP status is an error."""
# What the SDK logs of a server's faults is in the errors of the calls.
logging.getLogger("mcp").addHandler(logging.NullHandler())
logging.getLogger("mcp").propagate = False


Answer = TypeVar("Answer", bound=Result)
STALE: Final = "invalid_request_state"
"""Why a server refuses the state of an earlier call."""


class McpConnection:
    """The connection to one server; its methods may be called at the same time."""

    def __init__(
        self,
        name: str,
        server: McpServer,
        environ: Mapping[str, str],
        folder: Path | None = None,
        *,
        extensions: Sequence[ClientExtension] = (),
        logins: Logins | None = None,
        show: Callable[[str], None] | None = None,
        isolation: Isolation = DEFAULT_ISOLATION,
        hidden: Sequence[Path] = (),
    ) -> None:
        """Create the connection, which is not opened yet.

        Args:
            name: the server's name in the agent's file.
            server: the server.
            environ: the variables from which `$NAME` takes its value.
            folder: the workspace, in which a command starts; None: there is none.
            extensions: what the client can do beyond the protocol.
            logins: keeps the logins by OAuth.
            show: shows a person the address of a new login; None: a stored login is used.
            isolation: what a command can reach, if *server* does not say it.
            hidden: files that an isolated command does not see.
        """
        self.name = name
        self.server = server
        self._environ = environ
        self._folder = folder
        self._extensions = extensions
        self._logins, self._show = logins, show
        self.oauth: StoredOAuth | None = None
        """What sends the tokens of a login."""
        self._isolation = server.isolation or isolation
        self._hidden = hidden
        self._opening = asyncio.Lock()
        self._listing = asyncio.Lock()
        self._opened: OpenConnection | None = None
        self._task: asyncio.Task[None] | None = None
        self._said = bytearray()
        self._in_flight = 0
        self._refusals: dict[str, str] = {}
        """Why calls reached no tool, by trace: nobody listens, or a status of 400 to 499."""
        self.was_called = False
        """Whether a call was sent since the connection was opened."""

    @property
    def is_busy(self) -> bool:
        """Whether a call is in flight."""
        return self._in_flight > 0

    async def specs(self) -> dict[str, ToolSpec]:
        """Return the tools that the agent gets, by target.

        Raises:
            ToolFailedError: the server cannot be reached; nothing was called.
            ConfigError: the server's list of tools is unusable.
        """
        opened = await self._open()
        async with self._listing:  # no call may use the former list while the new one is asked for
            if opened.is_stale:
                opened.is_stale = False
                try:
                    await self._list(opened)
                except (MCPError, ValueError) as error:
                    opened.is_stale = True
                    raise self.unreached(error) from error
        return opened.specs

    async def used_specs(self) -> list[ToolSpec]:
        """Return the tools without those that would find no resource, or no prompt.

        Raises:
            ToolFailedError: the server cannot be reached.
            ConfigError: the server's list of tools is unusable.
        """
        specs, opened = await self.specs(), await self._open()
        empty = opened.readers & await unused(opened.client, self.server.start_seconds)
        return [each for each in specs.values() if tool_in(each) not in empty]

    async def call(
        self,
        tool: str,
        arguments: dict[str, Any],
        trace: str,
        *,
        answers: dict[str, Any] | None = None,
        state: str | None = None,
        on_progress: ProgressFnT | None = None,
    ) -> CallToolResult | Result | None:
        """Call *tool*, the name on the server, and return its result, or that of an extension.

        *trace* is the `traceparent` of this call alone. *answers* and *state* belong to what an
        earlier call asked for. Without *on_progress* the server is not asked for its progress.

        Returns None if the server does not take *state* any more; then nothing was run.

        Raises:
            ToolFailedError: `not_started`: the server cannot be reached; `lost`: the connection
                ended before the result; `tool_error`: the server refused the call, or its result
                is invalid.
        """
        opened = await self._open()
        self.was_called = True
        self._refusals.pop(trace, None)
        self._in_flight += 1
        more: AnswerParams = {
            "meta": cast("RequestParamsMeta", {TRACE: trace}),
            "input_responses": answers,
            "request_state": state or None,
        }
        try:
            if tool in opened.readers:
                return await read(opened.client, tool, arguments, **more)
            return await opened.client.session.call_tool(
                tool,
                arguments,
                progress_callback=on_progress,
                allow_input_required=True,
                allow_claimed=True,
                **more,
            )
        except MCPError as error:
            code, message = error.error.code, error.error.message
            if code != CONNECTION_CLOSED and message not in _OF_TRANSPORT:
                if isinstance(error.error.data, dict) and error.error.data.get("reason") == STALE:
                    return None
                raise ToolFailedError("tool_error", message) from error
            self._forget(opened)
            if refusal := self._refusals.pop(trace, None):
                raise self.unreached(refusal) from error
            why = f"MCP server {self.name} ended while {tool} ran{self._last_words()}"
            raise ToolFailedError("lost", why) from error
        except ValidationError as error:
            fault = error.errors()[0]
            where = ".".join(map(str, fault["loc"]))
            why = f"MCP server {self.name} returned an invalid result: {where}: {fault['msg']}"
            raise ToolFailedError("tool_error", f"{why}; it may have had effects") from error
        finally:
            self._in_flight -= 1

    def hide(self, content: bytes) -> bytes:
        """Return *content* without the tokens of a login."""
        return self.oauth.hide(content) if self.oauth else content

    async def ask(self, request: Request[Any, str], answer: type[Answer]) -> Answer:
        """Send a request that may be repeated, and return its answer.

        Raises:
            ToolFailedError: `not_started`: there is no valid answer; ask again.
            MCPError: the server refuses the request.
        """
        opened = None
        self._in_flight += 1
        try:
            opened = await self._open()
            return await opened.client.session.send_request(request, answer)
        except MCPError as error:
            closed = error.error.code == CONNECTION_CLOSED
            if not closed and error.error.message not in _OF_TRANSPORT:
                raise
            self._forget(opened)
            raise self.unreached(error) from error
        except (ConfigError, ValidationError) as error:
            raise self.unreached(error) from error
        finally:
            self._in_flight -= 1

    async def close(self) -> None:
        """End the connection, and the server's processes."""
        task, self._task, self._opened = self._task, None, None
        if task is not None:
            task.cancel()
            with suppress(asyncio.CancelledError, Exception):
                await task

    async def _open(self) -> OpenConnection:
        async with self._opening:
            if self._opened is not None:
                return self._opened
            await self.close()
            ready: asyncio.Future[OpenConnection] = asyncio.get_running_loop().create_future()
            self._task = asyncio.create_task(self._serve(ready))
            try:
                async with asyncio.timeout(self.server.start_seconds):
                    self._opened = await asyncio.shield(ready)
            except TimeoutError as error:
                await self.close()
                why = f"it did not start within {self.server.start_seconds:g} s"
                raise self.unreached(why) from error
            except BaseException:
                await self.close()
                raise
            self.was_called = False
            return self._opened

    async def _serve(self, ready: asyncio.Future[OpenConnection]) -> None:
        """Hold the connection open until it is lost or closed.

        The SDK demands that one task opens and closes it.
        """
        lost = asyncio.Event()
        opened: OpenConnection | None = None

        async def notice(message: object) -> None:
            if opened is not None and isinstance(message, ToolListChangedNotification):
                opened.is_stale = True

        def on_end() -> None:
            lost.set()
            self._forget(opened)

        try:
            async with AsyncExitStack() as stack:
                transport = await self._transport(stack, on_end)
                client = await stack.enter_async_context(
                    Client(
                        transport,
                        message_handler=notice,
                        elicitation_callback=not_now,
                        extensions=self._extensions,
                        cache=None,
                    )
                )
                opened = OpenConnection(client)
                watching = asyncio.create_task(opened.watch())
                stack.callback(watching.cancel)
                await self._list(opened)
                if not ready.done():
                    ready.set_result(opened)
                await lost.wait()
        except asyncio.CancelledError:
            ready.cancel()
            raise
        except Exception as error:  # noqa: BLE001 - the SDK's groups of errors included
            if not ready.done():
                ready.set_exception(self._start_failure(error))
        finally:
            on_end()

    def _forget(self, opened: OpenConnection | None) -> None:
        if self._opened is opened:
            self._opened = None

    async def _list(self, opened: OpenConnection) -> None:
        tools = await every(opened.client.list_tools, "tools")
        taken = {name_for_model(self.name, each.name) for each in tools}
        able = readers_of(opened.client.server_capabilities)
        readers = [each for each in able if name_for_model(self.name, each.name) not in taken]
        specs = specs_of(self.name, self.server, [*tools, *readers])
        opened.specs = {each.target: each for each in specs}
        opened.readers = {each.name for each in readers}

    async def _transport(self, stack: AsyncExitStack, on_end: Callable[[], None]) -> Any:
        unset = sorted(each for each in self.server.variables if each not in self._environ)
        if unset:
            raise ValueError(f"{unset[0]} has no value here; set the variable")
        values = {each: self._environ[each] for each in self.server.variables}
        if self.server.url:
            headers = with_values(self.server.headers, values)
            timeout = httpx2.Timeout(self.server.start_seconds, read=None)
            if self.server.oauth and self._logins:
                page = await stack.enter_async_context(login_page(self._show))
                self.oauth = StoredOAuth(self.name, self.server, values, self._logins, page)
            http = WatchedHttp(
                self._refusals.__setitem__, headers=headers, timeout=timeout, auth=self.oauth
            )
            client = await stack.enter_async_context(http)
            return streamable_http_client(self.server.url, http_client=client)
        box = server_sandbox(
            stack,
            self.name,
            self.server.command,
            isolation=self._isolation,
            environment=get_default_environment() | with_values(self.server.env, values),
            workspace=self._folder,
            hidden=self._hidden,
        )
        parameters = StdioServerParameters(
            command=sys.executable,
            args=["-S", "-E", "-P", guardian.__file__, box.for_guardian()],
            env=dict(box.environment),
            cwd=self._folder,
        )
        last_words = last_words_file(self._said, stack, box.descriptors)
        return watched(stdio_client(parameters, last_words), on_end)

    def _start_failure(self, error: Exception) -> Exception:
        """Return the error of a server that did not start; one of ours stays as it is."""
        while isinstance(error, ExceptionGroup):
            error = error.exceptions[0]
        match error:
            case ValidationError() | MCPError() | OSError() | ValueError() | httpx2.HTTPError():
                return self.unreached(error)
        return error

    def unreached(self, why: object) -> ToolFailedError:
        """Return the error of a server that has got no request."""
        told = f"MCP server {self.name} cannot be used: {why}"
        if self.server.command and self._isolation.kind != "none":
            told += f"; it is isolated, and `[mcp.{self.name}.isolation]` grants what it lacks"
        return ToolFailedError(NOT_STARTED, f"{told}{self._last_words()}")

    def _last_words(self) -> str:
        """Return the last lines of the server's stderr for an error; empty if there are none."""
        lines = self._said.decode(errors="replace").split("\n")[-_LINES - 1 :]
        said = "\n".join(lines).strip()
        return f". Its last words:\n{said}" if said else ""
