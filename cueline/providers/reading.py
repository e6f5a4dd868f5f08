"""Reads the pieces of a reply that each vendor sends as text."""

import json
from typing import Any, Final

from cueline.actors.model_port import Delta, DeltaSink
from cueline.events.message import ToolCall
from cueline.events.sanitize import with_pairs

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
    """Return the last *call* of a reply that was cut off so that it does not run, if it is half.

    Without room for more, missing arguments are cut off, too.
    """
    if call.malformed is None and call.arguments:
        return call
    return call.model_copy(update={"malformed": text, "problem": CUT_CALL})


def count_of(value: Any) -> int:
    """Return a number of tokens, which may come as text; nothing is 0.

    Raises:
        ArithmeticError: it is infinite.
        TypeError: it is no number.
        ValueError: it is no number, or below 0.
    """
    if (count := int(value or 0)) < 0:
        raise ValueError(count)
    return count


class WholeCharacters:
    """Passes on the pieces of a reply; a character that came in two pieces goes as one."""

    def __init__(self, deltas: DeltaSink) -> None:
        self._deltas = deltas
        self._half = ""

    def __call__(self, delta: Delta) -> None:
        """Take the next piece, as a `DeltaSink`."""
        text = with_pairs(self._half + delta.text)
        self._half = text[-1:] if "\ud800" <= text[-1:] <= "\udbff" else ""
        if text := text.removesuffix(self._half):
            self._deltas(Delta(delta.kind, text))
