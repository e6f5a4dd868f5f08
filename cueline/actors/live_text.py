"""Live text: passes the pieces of a model's replies to the watchers of a session.

The progress of tools goes the same way; of it a watcher gets the latest only.

Live text is not recorded, and not kept for a session without watchers. A watcher gets
the replies that begin after it subscribed. A watcher that is too slow loses the rest of
a reply, but always gets the beginning.

The host's presence names the address and a token. A watcher connects, sends one line
with the token and the session, gets one line as the answer, and then one line for each
piece. All lines are JSON.
"""

import asyncio
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from hmac import compare_digest
from itertools import groupby
from secrets import token_hex
from typing import Literal

import msgspec
from msgspec import Struct

from cueline.actors.model_port import Delta
from cueline.actors.tool_port import ToolOrder
from cueline.events.sanitize import Redactor, fit
from cueline.events.stream_redactor import StreamRedactor

BACKLOG = 256 * 1024
"""The approximate limit of the memory for the pieces of one slow watcher, in bytes."""
_OVERHEAD = 128
_MOST_CALLS = 100
"""The most calls whose progress is kept for a watcher."""


class TextDelta(Struct, frozen=True):
    """A piece of a model's reply; it is never recorded."""

    text: str
    kind: Literal["text", "thinking"]
    effect: str
    """The model call: `<turn>.m`."""
    attempt: int
    """A higher attempt of the same effect starts the reply again."""

    @property
    def call(self) -> tuple[str, int]:
        """The attempt of the model call."""
        return self.effect, self.attempt


class ToolProgress(Struct, frozen=True):
    """What a running call says of its progress; it is never recorded."""

    effect: str
    share: float | None
    """The done share of the work, from 0 to 1; None: unknown."""
    text: str


class LiveTextSubscription:
    """The pieces that one watcher has not taken yet."""

    def __init__(self) -> None:
        self.lost = 0
        """Number of pieces that were dropped because the watcher was too slow."""
        self._pieces: list[TextDelta] = []
        self._size = 0
        self._broken: tuple[str, int] | None = None
        """The call with a dropped piece, whose later pieces are dropped, too."""
        self._progress: dict[str, ToolProgress] = {}
        """The latest progress of each call, by effect."""
        self._news = asyncio.Event()

    def put(self, piece: TextDelta | ToolProgress) -> None:
        """Add *piece*, or drop it if there are too many."""
        if isinstance(piece, ToolProgress):
            if piece.effect in self._progress or len(self._progress) < _MOST_CALLS:
                self._progress[piece.effect] = piece
                self._news.set()
            return
        size = len(piece.text) + _OVERHEAD
        if piece.call == self._broken or self._size + size > BACKLOG:
            self._broken = piece.call
            self.lost += 1
            return
        self._pieces.append(piece)
        self._size += size
        self._news.set()

    async def take(self) -> Sequence[TextDelta]:
        """Wait for new pieces or new progress, and return the pieces, perhaps none."""
        await self._news.wait()
        return self.ready()

    def ready(self) -> Sequence[TextDelta]:
        """Return the new pieces at once; consecutive pieces are joined."""
        pieces, self._pieces, self._size = self._pieces, [], 0
        self._news.clear()
        if len(pieces) < 2:  # noqa: PLR2004 - nothing to join
            return pieces
        return [
            TextDelta("".join(each.text for each in same), kind, *call)
            for (kind, call), same in groupby(pieces, key=lambda each: (each.kind, each.call))
        ]

    def take_progress(self) -> Sequence[ToolProgress]:
        """Return the latest progress of each call that has told of some since the last time."""
        news, self._progress = self._progress, {}
        return tuple(news.values())


class LiveTextHub:
    """Passes the pieces of the replies of one host to the watchers of its sessions."""

    def __init__(self) -> None:
        self.redactors: dict[str, Redactor] = {}
        """The redactors of the running calls of tools, by idempotency key (I11)."""
        self._watchers: dict[str, list[LiveTextSubscription]] = {}

    @contextmanager
    def subscribe(self, stream: str) -> Iterator[LiveTextSubscription]:
        """Get the pieces of the replies of session *stream* that begin in this block."""
        subscription = LiveTextSubscription()
        self._watchers.setdefault(stream, []).append(subscription)
        try:
            yield subscription
        finally:
            self._watchers[stream].remove(subscription)
            if not self._watchers[stream]:
                del self._watchers[stream]

    def watchers(self, stream: str) -> Sequence[LiveTextSubscription]:
        """Return the current watchers of session *stream*."""
        return tuple(self._watchers.get(stream, ()))

    def sink(self, stream: str, effect: str, attempt: int, redactor: Redactor) -> "ReplySink":
        """Return the sink of one model call, which removes the secrets of *redactor* (I11)."""
        return ReplySink(self, stream, effect, attempt, redactor)

    def report(self, order: ToolOrder, share: float | None, text: str) -> None:
        """Pass on the progress of a call that a runner of this process runs."""
        redactor = self.redactors.get(order.key)
        if redactor is not None and (watchers := self.watchers(order.session)):
            progress = ToolProgress(order.effect, share, redactor.redact_parts(fit(text)))
            for watcher in watchers:
                watcher.put(progress)


class ReplySink:
    """Passes on the pieces of one reply; see `DeltaSink`."""

    __slots__ = (
        "_attempt",
        "_effect",
        "_hub",
        "_kind",
        "_part",
        "_redactor",
        "_stream",
        "_watchers",
    )

    def __init__(
        self, hub: LiveTextHub, stream: str, effect: str, attempt: int, redactor: Redactor
    ) -> None:
        self._hub = hub
        self._stream = stream
        self._effect = effect
        self._attempt = attempt
        self._redactor = redactor
        self._watchers: Sequence[LiveTextSubscription] | None = None
        """The watchers at the time of the first piece."""
        self._kind: Literal["text", "thinking"] = "text"
        self._part: StreamRedactor | None = None

    def __call__(self, delta: Delta) -> None:
        """Pass *delta* on, without secrets and perhaps later."""
        if self._watchers is None:
            self._watchers = self._hub.watchers(self._stream)
        if not self._watchers:
            return
        if self._part is None or delta.kind != self._kind:
            self.end()
            self._kind, self._part = delta.kind, StreamRedactor(self._redactor)
        self._pass(self._part.feed(delta.text))

    def end(self) -> None:
        """Pass on the held-back text: the reply, or a part of it, is complete."""
        if self._part is not None:
            self._pass(self._part.end())
            self._part = None

    def _pass(self, text: str) -> None:
        if text:
            piece = TextDelta(text, self._kind, self._effect, self._attempt)
            for watcher in self._watchers or ():
                watcher.put(piece)


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
        """The address as `HOST:PORT`; empty if the server does not listen."""
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
            with suppress(OSError, ValueError, TimeoutError):  # the watcher has left
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
                        news = [*taking.result(), *pieces.take_progress()]
                        writer.write(b"".join(msgspec.json.encode(each) + b"\n" for each in news))
                        await writer.drain()
            finally:
                leaving.cancel()


def piece_of(line: bytes | str) -> TextDelta | ToolProgress:
    """Return the piece in a line of JSON.

    Raises:
        ValueError: it is none.
    """
    try:
        return msgspec.json.decode(line, type=TextDelta)
    except msgspec.ValidationError:
        return msgspec.json.decode(line, type=ToolProgress)


async def receive(
    address: str, token: str, stream: str, put: Callable[[TextDelta | ToolProgress], None]
) -> None:
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
            put(piece_of(line))
    finally:
        writer.close()
