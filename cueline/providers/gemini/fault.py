"""Translates Gemini's errors."""

from collections.abc import Iterator, Mapping
from typing import Any, Final

from cueline.providers.fault import Fault, error_in, fault_of

KINDS: Final = {
    "API_KEY_INVALID": "authentication_error",
    "FAILED_PRECONDITION": "permission_error",  # no billing, or not in this country
    "INVALID_ARGUMENT": "invalid_request_error",
    "RESOURCE_EXHAUSTED": "rate_limit_error",
    "UNAVAILABLE": "server_error",
}
"""The type of an error by its reason or status, for answers whose HTTP status says too little."""


def gemini_fault(status: int, text: str, headers: Mapping[str, str]) -> Fault:
    """Return the error for an answer that is an error."""
    error = error_in(text)
    if not isinstance(error, Mapping):
        return fault_of(status, None, text or "no message", headers)
    details = list(details_of(error))
    reasons = (*(detail.get("reason") for detail in details), error.get("status"))
    kind = next((KINDS[name] for name in reasons if isinstance(name, str) and name in KINDS), None)
    delays = [detail["retryDelay"] for detail in details if "retryDelay" in detail]
    asked = {"retry-after": str(delays[0]).removesuffix("s")} if delays else {}
    code = error.get("code")
    return fault_of(
        code if status == 200 and isinstance(code, int) else status,  # noqa: PLR2004 - within a stream
        kind or error.get("status"),
        str(error.get("message") or text),
        {**asked, **headers},
    )


def details_of(error: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """Yield the details of an error that can be read."""
    details = error.get("details")
    for detail in details if isinstance(details, list) else ():
        if isinstance(detail, Mapping):
            yield detail
