"""Answers calls of a rerun with the results of the earlier session."""

import json
from base64 import b64decode

from cueline.actors.tool_port import ToolOrder, ToolOutput
from cueline.errors import ToolFailedError
from cueline.events.codes import NOT_RECORDED, PERMANENT
from cueline.events.sanitize import cut

_LONGEST = 500


def recorded_output(order: ToolOrder) -> ToolOutput | None:
    """Return the recorded output of the call; None if the call has to run.

    Raises:
        ToolFailedError: the call failed then, or has no recorded result and may not run.
    """
    recording = order.tool.recording
    if recording is None:
        return None
    result = recording.result_of(order.effect, order.arguments)
    if result is None:
        if recording.run_others:
            return None
        arguments = cut(json.dumps(order.arguments, ensure_ascii=False), _LONGEST)
        why = f"the recording has no result of the call {order.effect}: {order.tool.name}"
        raise ToolFailedError(NOT_RECORDED, f"{why} {arguments}; --run-tools runs such calls")
    if result.image:
        return ToolOutput(b64decode(result.image), 0.0, media_type=result.media_type)
    if not result.failed:
        return ToolOutput(result.text.encode(errors="surrogatepass"), 0.0)
    # Another kind could be retried, or put the call in doubt.
    kind, colon, message = result.text.partition(": ")
    if colon and kind in PERMANENT:
        raise ToolFailedError(kind, message)
    raise ToolFailedError("tool_error", result.text)
