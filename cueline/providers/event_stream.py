"""Reads a streamed reply: server-sent events or JSON lines, and the parts sent as text.

See html.spec.whatwg.org/multipage/server-sent-events.html.
"""

import json
import re
from collections.abc import AsyncGenerator, AsyncIterator
from typing import Any, Final

from cueline.actors.model_port import Delta, DeltaSink
from cueline.events.message import ToolCall
from cueline.events.sanitize import with_pairs

JSON_LINE_END: Final = re.compile(rb"\n")
EVENT_LINE_END: Final = re.compile(rb"\r\n|\n|\r")
BOM: Final = b"\xef\xbb\xbf"
DATA: Final = b"data"
DONE: Final = object()
"""The value for the event that ends OpenAI's streams, whose data is no JSON."""
_DONE: Final = "[DONE]"


async def lines_of(chunks: AsyncIterator[bytes], end: re.Pattern[bytes]) -> AsyncGenerator[bytes]:
    """Yield the lines of *chunks*, each as soon as its *end* has arrived; the last needs no end."""
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
    """Yield the JSON values of the events of *chunks*, and `DONE` for the event that ends a stream.

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


CUT_CALL: Final = (
    "Not run: the answer was cut off in the middle of this call, for it has"
    " limits.max_output_tokens. Ask for less at once."
)
"""The text for the model about a call that was cut off."""


def tool_call(call_id: str, name: str, text: str, default: Any = None) -> ToolCall:
    """Return the call with the arguments in *text*; no text means *default*.

    The SDK would turn invalid JSON into `{}`, and the tool would run without arguments.
    """
    try:
        arguments = json.loads(text) if text.strip() else default or {}
        # JSON has no NaN and no infinity, though Python reads them.
        json.dumps(arguments, allow_nan=False)
        return ToolCall(id=call_id, name=name, arguments=arguments)
    except (ValueError, RecursionError):
        return ToolCall(id=call_id, name=name, malformed=text)


def is_object(text: str) -> bool:
    """Whether *text* is a whole JSON object."""
    try:
        return isinstance(json.loads(text), dict)
    except (ValueError, RecursionError):
        return False


def without_half(call: ToolCall, text: str) -> ToolCall:
    """Return the last *call* of a cut-off reply; an incomplete call does not run.

    Missing arguments of a reply at its limit also count as cut off.
    """
    if call.malformed is None and call.arguments:
        return call
    return call.model_copy(update={"malformed": text, "problem": CUT_CALL})


def count_of(value: Any) -> int:
    """Return *value*, a number or its text, as a number of tokens; an empty value is 0.

    Raises:
        ArithmeticError: it is infinite.
        TypeError: it is no number.
        ValueError: it is no number, or below 0.
    """
    if (count := int(value or 0)) < 0:
        raise ValueError(count)
    return count


class WholeCharacters:
    """Passes on the pieces of a reply; a character that arrived in two pieces is joined."""

    def __init__(self, deltas: DeltaSink) -> None:
        self._deltas = deltas
        self._half = ""

    def __call__(self, delta: Delta) -> None:
        """Take the next piece, as a `DeltaSink`."""
        text = with_pairs(self._half + delta.text)
        self._half = text[-1:] if "\ud800" <= text[-1:] <= "\udbff" else ""
        if text := text.removesuffix(self._half):
            self._deltas(Delta(delta.kind, text))
