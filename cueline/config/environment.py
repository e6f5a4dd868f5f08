"""The environment variables of this process, which may be secrets, and its user."""

import os
import sys
from collections.abc import Iterator, Mapping
from getpass import getuser

from cueline.events.trace import traceparent, valid_traceparent


class Environment(Mapping[str, str]):
    """The environment variables of this process; no `repr` shows a value (I11)."""

    __slots__ = ()

    def __getitem__(self, name: str) -> str:
        """Return the value of a variable."""
        return os.environ[name]

    def __iter__(self) -> Iterator[str]:
        """Iterate over the names of set variables."""
        return iter(os.environ)

    def __len__(self) -> int:
        """Return the number of set variables."""
        return len(os.environ)

    def __repr__(self) -> str:
        return f"Environment({len(self)} variables)"


HERE = Environment()
TRACEPARENT = "TRACEPARENT"
"""The variable with the trace and span of the program that started this process."""


def caller_trace() -> str:
    """Return the traceparent of the current span of this program, or the one in TRACEPARENT.

    Empty: there is none.
    """
    trace = sys.modules.get("opentelemetry.trace")  # a program that makes spans has imported it
    if trace is not None and (span := trace.get_current_span().get_span_context()).is_valid:
        return traceparent(f"{span.trace_id:032x}", f"{span.span_id:016x}")
    text = os.environ.get(TRACEPARENT)
    return valid_traceparent(text) if text else ""


def user_name() -> str:
    """Return the name of this process's user on this machine."""
    try:
        return getuser()
    except (OSError, KeyError):
        return str(os.getuid())
