"""Converts the return value of a tool's function to its recorded form.

A value without a recorded form raises `ToolFailedError`.
"""

import errno
import json
import math
import re
import signal
from typing import Literal, cast, get_args

from pydantic_core import PydanticSerializationError, to_json, to_jsonable_python

from cueline.actors.tool_port import JSON, ReconcileFinding
from cueline.errors import ToolFailedError
from cueline.events.codes import SAID
from cueline.events.fact import unsayable
from cueline.events.message import FORMATS, IMAGE_LIMIT, image_type
from cueline.events.sanitize import CUT, cut, fit
from cueline.tools.tool import OUTPUT_LIMIT, Image, Output

MESSAGE_LIMIT = 10_000
SAYABLE = SAID | {"invalid_arguments"}
SHORTAGES = frozenset({errno.EAGAIN, errno.EMFILE, errno.ENFILE, errno.ENOMEM})
"""The system's errors when processes, open files or memory have run out."""
HUGE = re.compile(rb"\d{4301}")
"""The most digits that Python reads as a number."""
TEXTS = (str, bytes, bytearray)
"""The types that are returned as text; all other values are JSON."""
Outcome = Literal["happened", "did_not_happen", "unknown"]
OUTCOMES = get_args(Outcome)


def output_of(value: object) -> Output:
    """Return *value* as bytes: text and bytes unchanged, all other values as JSON."""
    if isinstance(value, Image):
        return Output(value.content, media_type=_type_of(value.content))
    if isinstance(value, Output):
        return Output(content_of(value.content), value.truncated_from, value.media_type, value.text)
    content = content_of(value)
    if len(content) > OUTPUT_LIMIT:
        return Output(content[:OUTPUT_LIMIT] + CUT.encode(), len(content))
    return Output(content, media_type="" if isinstance(value, TEXTS) else JSON)


def _type_of(image: bytes) -> str:
    """Return the media type of *image*."""
    if not (kind := image_type(image)):
        raise ToolFailedError("tool_error", f"it ran, but its image is not {FORMATS}")
    if len(image) > IMAGE_LIMIT:
        most = f"the largest that models take has {IMAGE_LIMIT:,}"
        raise ToolFailedError(
            "tool_error", f"it ran, but its image has {len(image):,} bytes; {most}"
        )
    return kind


def content_of(value: object) -> bytes:
    """Return *value* as bytes."""
    match value:
        case bytes() | bytearray():
            return bytes(value)
        case str():
            # Half a surrogate pair is no text; it is replaced when the result is recorded.
            return value.encode(errors="surrogatepass")
        case _:
            try:
                return _json_of(value)
            except (TypeError, ValueError, RecursionError) as error:
                message = f"it ran, but what it returned is neither text nor JSON: {error}"
                raise ToolFailedError("tool_error", message) from None


def _json_of(value: object) -> bytes:
    try:
        said = to_json(value)
    except PydanticSerializationError:
        # Python turns bytes of a file name that are no UTF-8 into halves of surrogate pairs.
        text = json.dumps(
            value, ensure_ascii=False, separators=(",", ":"), default=to_jsonable_python
        )
        said = fit(text).encode()
    suspected = b"NaN" in said or b"Infinity" in said or HUGE.search(said)
    if suspected and (found := unsayable(json.loads(said))):
        raise ToolFailedError(
            "tool_error", f"it ran, but its result has {found}: JSON has null, and no such number"
        )
    return said


def finding_of(value: object) -> ReconcileFinding:
    """Return the result of `reconcile` as a finding."""
    match value:
        case ReconcileFinding():
            return value
        case str() if value in OUTCOMES:
            return ReconcileFinding(cast("Outcome", value))
        case (str() as outcome, output) if outcome in OUTCOMES:
            return ReconcileFinding(
                cast("Outcome", outcome), content_of(output).decode(errors="replace")
            )
        case _:
            message = (
                f"reconcile returned {cut(repr(value), 200)}, but not one of {', '.join(OUTCOMES)}"
            )
            raise ToolFailedError("tool_error", message)


def failure_of(error: BaseException) -> ToolFailedError:
    """Return *error* as a failure for the model: its name and message, no traceback.

    A tool can only use the kinds of its own failures: it cannot report that a call was
    lost, or never began (I5).
    """
    match causes(error):
        case (ToolFailedError() as said,):
            kind = said.kind if said.kind in SAYABLE else "tool_error"
            return ToolFailedError(kind, str(said.message), wait_of(said.retry_after))
        case _:
            return ToolFailedError("tool_error", said_by(error))


def causes(error: BaseException) -> tuple[BaseException, ...]:
    """Return *error* as a tuple; for a group, for example of a `TaskGroup`, its members."""
    if not isinstance(error, BaseExceptionGroup):
        return (error,)
    return tuple(cause for each in error.exceptions for cause in causes(each))


def is_transient(error: Exception, transient: tuple[type[Exception], ...]) -> bool:
    """Whether the tool declares *error*, or all members of a group, as transient."""
    return isinstance(error, transient) or all(isinstance(c, transient) for c in causes(error))


def transient_failure(error: Exception) -> ToolFailedError:
    """Return the failure of an error that the tool declares as transient."""
    match causes(error)[0]:
        case ToolFailedError() as said:
            return said  # the failure that the tool raised is more exact
        case TimeoutError():
            kind = "timeout"
        case ConnectionError():
            kind = "network"
        case _:
            kind = "unavailable"
    return ToolFailedError(kind, said_by(error))


def said_by(error: BaseException) -> str:
    """Return the name and the message of *error*, and those of its members."""
    pieces = causes(error) if isinstance(error, BaseExceptionGroup) else ()
    return cut("\n".join(map(_said_by_one, (error, *pieces))), MESSAGE_LIMIT)


def _said_by_one(error: BaseException) -> str:
    try:
        message = str(error)
    except Exception:  # noqa: BLE001 - it is other people's code, too
        message = ""
    return cut(f"{type(error).__name__}: {message}".removesuffix(": "), MESSAGE_LIMIT)


def signal_name(number: int) -> str:
    """Return the name of a signal, or `signal N` for a signal without a name."""
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


def wait_of(asked: object) -> float | None:
    """Return the wait that a tool requests, in seconds; None if it is not valid."""
    if isinstance(asked, int | float) and 0 <= asked < math.inf:
        return float(asked)
    return None
