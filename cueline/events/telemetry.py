"""The fact of the cursors of exports: streams `telemetry-default/<cursor>`.

A cursor has no owner: every append is a compare-and-set on its version, so of two processes that
export by one cursor, one stops.
"""

from typing import Final, Literal

from cueline.events.fact import Fact, Whole
from cueline.events.stream import stream_name

CATEGORY: Final = "telemetry"


class SpansExported(Fact):
    """A back-end has accepted the spans of the events up to a position."""

    type: Literal["SpansExported"] = "SpansExported"
    position: Whole
    """The position up to which events were exported."""
    spans: Whole
    """The number of spans since the cursor's last fact."""


def cursor_stream(cursor: str) -> str:
    """Return the stream of a cursor.

    Raises:
        InvalidNameError: the name is invalid; choose another.
    """
    return stream_name(CATEGORY, cursor)
