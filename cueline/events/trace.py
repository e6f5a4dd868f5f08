"""The ids of traces and spans, which are the same each time they are computed.

A session and its descendants are one trace: the caller's, or one of their own. A `traceparent`
names a trace and a span in it (<https://www.w3.org/TR/trace-context/>).
"""

import re
from hashlib import blake2b
from typing import Final

_FORM: Final = re.compile(
    r"(?!ff)[0-9a-f]{2}-(?!0{32})([0-9a-f]{32})-(?!0{16})([0-9a-f]{16})-[0-9a-f]{2}(-.*)?"
)

_LENGTH: Final = 55
"""The length of version 00."""


def ids_in(traceparent: str) -> tuple[str, str] | None:
    """Return the trace and the span that *traceparent* names, in hex; None if it is invalid."""
    found = _FORM.fullmatch(traceparent)
    return (found[1], found[2]) if found else None


def valid_traceparent(text: str) -> str:
    """Return the traceparent *text*, without what a later version of the standard may add to it.

    It is empty if *text* is invalid, which the standard says to ignore.
    """
    return text[:_LENGTH] if ids_in(text) else ""


def trace_id(log_id: str, root: str, caller: str = "") -> str:
    """Return the trace of the tree below the session *root*, in hex.

    *caller* is the traceparent of whoever started the tree; empty: unknown.
    """
    known = ids_in(caller)
    return known[0] if known else _hash(log_id, root, size=16)


def span_id(log_id: str, session: str, place: str) -> str:
    """Return the span at *place* of a session, in hex: an effect and its attempt, for example."""
    return _hash(log_id, session, place, size=8)


def call_place(effect: str, attempt: int) -> str:
    """Return the place of one attempt of a call in its session."""
    return f"{effect}/{attempt}"


def traceparent(trace: str, span: str) -> str:
    """Return the traceparent of a span."""
    return f"00-{trace}-{span}-01"


def _hash(*words: str, size: int) -> str:
    return blake2b("\n".join(words).encode(), digest_size=size).hexdigest()
