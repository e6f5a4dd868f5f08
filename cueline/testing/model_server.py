"""The servers for the contract of models: a third party's, and recorded answers."""

import asyncio
import json
from collections import deque
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Literal, Protocol, Self

from cueline.events.message import ToolCall

StreamFault = Literal["cut", "disconnect", "garble", "stall"]
"""The stream ends early without an error; is lost; has a piece that is not JSON; is silent."""


class ModelServer(Protocol):
    """A server with the vendor's protocol, written by a third party."""

    @property
    def base_url(self) -> str:
        """The address of the server, as in an agent's `base_url`."""

    @property
    def requests(self) -> list[Any]:
        """The JSON bodies of all requests so far."""

    def say(self, text: str) -> None:
        """Answer the next request with *text*, in several pieces."""

    def call(self, *calls: ToolCall) -> None:
        """Answer the next request with tool calls."""

    def spoil_call(self) -> None:
        """Answer the next request with a call whose arguments are not JSON."""

    def fail(self, status: int, retry_after: float | None = None) -> None:
        """Answer the next request with an error."""

    def break_stream(self, fault: StreamFault) -> None:
        """Break the next answer after its first pieces; a silence lasts 30 s."""


@dataclass(frozen=True)
class Recorded:
    """A vendor's answer, byte for byte."""

    body: bytes
    status: int = 200
    media_type: str = "text/event-stream"


def events(*pieces: Mapping[str, Any], end: str = "") -> Recorded:
    """Return a stream of server-sent events, each with its type as its name, if it has one."""
    named = ((f"event: {p['type']}\n" if "type" in p else "", json.dumps(p)) for p in pieces)
    stream = "".join(f"{name}data: {text}\n\n" for name, text in named)
    return Recorded((stream + (f"data: {end}\n\n" if end else "")).encode())


def lines(*pieces: Mapping[str, Any]) -> Recorded:
    """Return a stream of JSON lines."""
    text = "".join(f"{json.dumps(piece)}\n" for piece in pieces)
    return Recorded(text.encode(), media_type="application/x-ndjson")


def error(status: int, body: Any) -> Recorded:
    """Return an error."""
    return Recorded(json.dumps(body).encode(), status, "application/json")


class RecordedServer:
    """Answers each request with the next recorded answer."""

    def __init__(self) -> None:
        self.answers: deque[Recorded] = deque()
        self.requests: list[Any] = []
        self.may_end = asyncio.Event()
        """Until this event is set, answers stop at `stops_after`, and stay open."""
        self.may_end.set()
        self.stops_after = 0.5
        """The share of an answer before the stop."""
        self.was_left = asyncio.Event()
        """A client closed its connection in the middle of an answer."""
        self._writers: set[asyncio.StreamWriter] = set()
        self._server: asyncio.Server | None = None
        self.base_url = ""

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._answer, "127.0.0.1", 0)
        self.base_url = f"http://127.0.0.1:{self._server.sockets[0].getsockname()[1]}"
        return self

    async def __aexit__(self, *_: object) -> None:
        self.may_end.set()
        await self.stop_listening()
        for writer in self._writers:
            writer.close()
            with suppress(ConnectionError):
                await writer.wait_closed()

    async def stop_listening(self) -> None:
        """Refuse further connections."""
        if self._server is not None:
            self._server.close()

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._writers.add(writer)
        head = (await reader.readuntil(b"\r\n\r\n")).decode().lower().splitlines()
        length = next((int(h.split(":")[1]) for h in head if h.startswith("content-length:")), 0)
        asked = await reader.readexactly(length)
        self.requests.append(json.loads(asked) if asked else None)
        answer = self.answers.popleft()
        told = f"HTTP/1.1 {answer.status} .\r\ncontent-type: {answer.media_type}\r\n"
        writer.write(f"{told}connection: close\r\n\r\n".encode())
        middle = int(len(answer.body) * self.stops_after)
        writer.write(answer.body[:middle])
        await writer.drain()
        if await self._is_left(reader):
            self.was_left.set()
        else:
            writer.write(answer.body[middle:])
        writer.close()

    async def _is_left(self, reader: asyncio.StreamReader) -> bool:
        """Wait until the answer may end, or the client leaves."""
        ending = asyncio.create_task(self.may_end.wait())
        leaving = asyncio.create_task(reader.read(1))
        await asyncio.wait({ending, leaving}, return_when=asyncio.FIRST_COMPLETED)
        left = not ending.done()
        for task in (ending, leaving):
            task.cancel()
        return left
