"""The ways to an MCP server: what the SDK lacks to tell a lost call from one that was not sent."""

import asyncio
import json
import os
import socket
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from types import TracebackType
from typing import Any, Final, Self, TextIO

import httpx2
from mcp.client.auth import OAuthFlowError

from cueline.errors import ConfigError

TRACE: Final = "traceparent"
"""The name of a call's trace in its metadata (SEP-414)."""
_TAIL: Final = 2000
"""The most bytes of a server's last words in an error."""


class WatchedHttp(httpx2.AsyncClient):
    """An HTTP client that tells which calls reached no tool."""

    def __init__(self, on_refusal: Callable[[str, str], None], **settings: Any) -> None:
        """Create the client; *on_refusal* gets the trace of a refused call, and why.

        The trace of a request that is no call is empty.
        """
        super().__init__(**settings)
        self._on_refusal = on_refusal

    async def send(self, request: httpx2.Request, **how: Any) -> httpx2.Response:
        try:
            response = await super().send(request, **how)
        except (httpx2.ConnectError, httpx2.ConnectTimeout):
            self._on_refusal(_trace_of(request), "it refuses connections")
            raise
        except (OAuthFlowError, ConfigError, OSError, ValueError) as error:
            self._on_refusal(_trace_of(request), str(error))
            raise httpx2.ConnectError(str(error)) from error
        if response.is_client_error:
            why = f"it answers with the status {response.status_code}"
            self._on_refusal(_trace_of(request), why)
        return response


def _trace_of(request: httpx2.Request) -> str:
    """Return the trace of the call that *request* sends; empty if it sends no call."""
    with suppress(ValueError, httpx2.RequestNotRead):
        said = json.loads(request.content)
        if isinstance(said, dict) and said.get("method") == "tools/call":
            return str(said["params"]["_meta"][TRACE])
    return ""


class _WatchedStream:
    """The messages of a server; without the lines that are no messages."""

    def __init__(self, inner: Any, on_end: Callable[[], None]) -> None:
        self._inner, self._on_end = inner, on_end

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Any:
        try:
            while isinstance(item := await self._inner.__anext__(), Exception):
                pass
        except BaseException:
            self._on_end()
            raise
        return item

    async def receive(self) -> Any:
        return await self.__anext__()

    async def aclose(self) -> None:
        await self._inner.aclose()

    async def __aenter__(self) -> Self:
        await self._inner.__aenter__()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> Any:
        return await self._inner.__aexit__(kind, error, trace)


@asynccontextmanager
async def watched(transport: Any, on_end: Callable[[], None]) -> AsyncIterator[tuple[Any, Any]]:
    """Yield the streams of *transport*; *on_end* is called when the server ends its stream."""
    async with transport as (read, write):
        yield _WatchedStream(read, on_end), write


def last_words_file(
    said: bytearray, stack: AsyncExitStack, descriptors: Sequence[int] = ()
) -> TextIO:
    """Return a file for a server's stderr, whose last bytes are kept in *said*.

    It is a socket, which hands *descriptors* to the process that has it; see `guardian.keep`.
    """
    source, target = socket.socketpair()
    if descriptors:
        socket.send_fds(source, [b"."], descriptors)
    source.setblocking(False)  # noqa: FBT003 - the socket gives it no name
    loop = asyncio.get_running_loop()
    said.clear()

    def keep() -> None:
        with suppress(BlockingIOError, ConnectionError):
            chunk = source.recv(1 << 16)
            said.extend(chunk)
            del said[:-_TAIL]
            if not chunk:
                loop.remove_reader(source)

    def end() -> None:
        keep()
        loop.remove_reader(source)
        source.close()

    loop.add_reader(source, keep)
    stack.callback(end)
    return stack.enter_context(os.fdopen(target.detach(), "w"))
