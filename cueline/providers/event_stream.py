"""Reads a stream of server-sent events, or of JSON lines, from its bytes.

See html.spec.whatwg.org/multipage/server-sent-events.html.
"""

import json
import re
from collections.abc import AsyncGenerator, AsyncIterator
from typing import Any, Final

JSON_LINE_END: Final = re.compile(rb"\n")
EVENT_LINE_END: Final = re.compile(rb"\r\n|\n|\r")
BOM: Final = b"\xef\xbb\xbf"
DATA: Final = b"data"
DONE: Final = object()
"""Stands for the event that ends OpenAI's streams, whose data is no JSON."""
_DONE: Final = "[DONE]"


async def lines_of(chunks: AsyncIterator[bytes], end: re.Pattern[bytes]) -> AsyncGenerator[bytes]:
    """Yield the lines of *chunks*, each as soon as its *end* has come; the last needs no end."""
    line: list[bytes] = []
    half_ended = False
    async for received in chunks:
        # CRLF is one end, though it may come in two chunks.
        chunk = received.removeprefix(b"\n") if half_ended else received
        half_ended = end is EVENT_LINE_END and received.endswith(b"\r")
        first, *others = end.split(chunk)
        line.append(first)
        for other in others:
            yield b"".join(line)
            line = [other]
    yield b"".join(line)


async def json_lines(chunks: AsyncIterator[bytes]) -> AsyncGenerator[Any]:
    """Yield the JSON values of *chunks*, one a line.

    Raises:
        ValueError: a line is no JSON.
    """
    async for line in lines_of(chunks, JSON_LINE_END):
        if line.strip():
            yield json.loads(line)


async def json_events(chunks: AsyncIterator[bytes]) -> AsyncGenerator[Any]:
    """Yield the JSON values of the events of *chunks*, and `DONE` at the end, if it is there.

    A line that is JSON without a field is an event: some servers answer with one object.

    Raises:
        ValueError: the data of an event is no JSON.
    """
    async for data in data_of(chunks):
        text = data.decode(errors="replace").strip()
        if text.startswith(_DONE):
            yield DONE
            return
        if text:
            yield json.loads(text)


async def data_of(chunks: AsyncIterator[bytes]) -> AsyncGenerator[bytes]:
    """Yield the data of each event of *chunks*; the last event needs no end."""
    data: list[bytes] = []
    async for line in lines_of(chunks, EVENT_LINE_END):
        field, _, value = line.removeprefix(BOM).partition(b":")
        if field == DATA:
            data.append(value.removeprefix(b" "))
        elif line.startswith((b"{", b"[")):
            yield line
        elif not line and data:
            yield b"\n".join(data)
            data = []
    yield b"\n".join(data)
