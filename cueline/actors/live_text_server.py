"""Live text for watchers in other processes: a socket of each host.

The host's presence names the address and a token. A watcher connects, sends one line
with the token and the session, gets one line as the answer, and then one line for each
piece. All lines are JSON.
"""

import asyncio
from collections.abc import Callable
from contextlib import suppress
from hmac import compare_digest
from secrets import token_hex

import msgspec
from msgspec import Struct

from cueline.actors.live_text import LiveTextHub, TextDelta

LOCAL = "127.0.0.1"
HELLO_SECONDS = 5.0
"""Time to connect, and to send the request."""
_LONGEST_LINE = 4 * 1024 * 1024


class Hello(Struct, frozen=True):
    """The first line from a watcher."""

    token: str
    stream: str
    """The session's stream."""


class LiveTextServer:
    """Serves the live text of one host."""

    def __init__(self, hub: LiveTextHub) -> None:
        self.token = token_hex(16)
        self.address = ""
        """The address as `HOST:PORT`; empty: it does not listen."""
        self._hub = hub
        self._server: asyncio.Server | None = None
        self._connections: set[asyncio.Task[None]] = set()

    async def start(self, host: str = LOCAL) -> None:
        """Listen on *host*, at a port that the kernel chooses.

        If that fails, there is no address: watchers follow the log alone.
        """
        with suppress(OSError):
            self._server = await asyncio.start_server(self._connected, host, 0)
            port = self._server.sockets[0].getsockname()[1]
            self.address = f"{host}:{port}"

    async def close(self) -> None:
        """End all connections."""
        if self._server is not None:
            self._server.close()
        for connection in self._connections:
            connection.cancel()
        await asyncio.gather(*self._connections, return_exceptions=True)

    def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        connection = asyncio.create_task(self._serve(reader, writer))
        self._connections.add(connection)
        connection.add_done_callback(self._connections.discard)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            with suppress(OSError, ValueError, TimeoutError):  # of a watcher that has left
                async with asyncio.timeout(HELLO_SECONDS):
                    hello = msgspec.json.decode(await reader.readline(), type=Hello)
                if compare_digest(hello.token.encode(), self.token.encode()):
                    await self._send(hello.stream, reader, writer)
        finally:
            writer.close()

    async def _send(
        self, stream: str, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        """Send the pieces of *stream* until the watcher leaves."""
        leaving = asyncio.ensure_future(reader.read())
        with self._hub.subscribe(stream) as pieces:
            try:
                writer.write(b"{}\n")
                while not leaving.done():
                    taking = asyncio.ensure_future(pieces.take())
                    try:
                        await asyncio.wait((taking, leaving), return_when=asyncio.FIRST_COMPLETED)
                    finally:
                        taking.cancel()
                    if not leaving.done():
                        lines = (msgspec.json.encode(piece) + b"\n" for piece in taking.result())
                        writer.write(b"".join(lines))
                        await writer.drain()
            finally:
                leaving.cancel()


async def receive(address: str, token: str, stream: str, put: Callable[[TextDelta], None]) -> None:
    """Call *put* with each piece of *stream* from the host at *address*, until it ends.

    Raises:
        OSError: there is no connection.
        TimeoutError: there is no answer.
        ValueError: the answer is not that of a host.
    """
    host, _, port = address.rpartition(":")
    async with asyncio.timeout(HELLO_SECONDS):
        reader, writer = await asyncio.open_connection(host, int(port), limit=_LONGEST_LINE)
    try:
        async with asyncio.timeout(HELLO_SECONDS):
            writer.write(msgspec.json.encode(Hello(token, stream)) + b"\n")
            await reader.readline()
        while line := await reader.readline():
            put(msgspec.json.decode(line, type=TextDelta))
    finally:
        writer.close()
