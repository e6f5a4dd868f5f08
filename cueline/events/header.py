"""HTTP headers of the requests to a model's server.

`$NAME` in a value stands for an environment variable, so that no secret is recorded.
"""

import re
from collections.abc import Iterator, Mapping
from typing import Final

_NAME: Final = re.compile(r"[A-Za-z0-9-]+")
_VALUE: Final = re.compile(r"[ -~]+")
_VARIABLE: Final = re.compile(r"\$([A-Za-z_]\w*)", re.ASCII)
_SECRET: Final = re.compile(
    "auth|cookie|credential|key|passw|secret|signature|token", re.IGNORECASE
)


def is_secret(name: str) -> bool:
    """Whether a header, or a part of an address, of this name holds a secret."""
    return _SECRET.search(name) is not None


def problem_of(headers: Mapping[str, str]) -> str:
    """Return what is wrong with *headers*; empty if nothing is."""
    for name, value in headers.items():
        if not _NAME.fullmatch(name) or not _VALUE.fullmatch(value):
            return f"{name!r} is no header with a value, both in ASCII"
        if is_secret(name) and not _VARIABLE.search(value):
            return f"{name!r} would be recorded; write $NAME for the variable that holds its value"
    return ""


def variables_in(headers: Mapping[str, str]) -> Iterator[str]:
    """Yield the names of the variables in the values of *headers*."""
    for value in headers.values():
        yield from _VARIABLE.findall(value)


def with_values(headers: Mapping[str, str], values: Mapping[str, str]) -> dict[str, str]:
    """Return *headers* with the *values* of their variables."""
    return {
        name: _VARIABLE.sub(lambda found: values[found[1]], value)
        for name, value in headers.items()
    }
