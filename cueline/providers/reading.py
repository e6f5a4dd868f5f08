"""Reads the parts of a reply that each vendor sends as text."""

import json
from typing import Any, Final

from cueline.events.message import ToolCall

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


def without_half(call: ToolCall, text: str) -> ToolCall:
    """Return the last *call* of a reply that was cut off so that it does not run, if it is half.

    Without room for more, missing arguments are cut off, too.
    """
    if call.malformed is None and call.arguments:
        return call
    return call.model_copy(update={"malformed": text, "problem": CUT_CALL})
