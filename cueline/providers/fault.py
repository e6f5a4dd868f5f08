"""Translates API errors into transient and permanent errors."""

import json
import math
import re
from collections.abc import Mapping
from email.utils import parsedate_to_datetime
from typing import Any, Final

from cueline.errors import ProviderRefusedError, ProviderUnavailableError
from cueline.events.codes import BY_STATUS, OF_ACCOUNT, TRANSIENT
from cueline.events.sanitize import Redactor, cut

Fault = ProviderUnavailableError | ProviderRefusedError

BY_TYPE: Final = {
    "api_error": "unavailable",
    "authentication_error": "auth",
    "billing_error": "auth",
    "content_filter": "content_filtered",
    "content_policy_violation": "content_filtered",
    "context_length_exceeded": "context_too_long",
    "exceed_context_size_error": "context_too_long",
    "insufficient_quota": "auth",
    "invalid_api_key": "auth",
    "invalid_prompt": "refused",
    "invalid_request_error": "invalid_request",
    "not_found_error": "invalid_request",
    "overloaded_error": "overloaded",
    "permission_error": "auth",
    "rate_limit_error": "rate_limited",
    "rate_limit_exceeded": "rate_limited",
    "request_too_large": "context_too_long",
    "server_error": "unavailable",
    "server_is_overloaded": "overloaded",
    "timeout_error": "timeout",
}
"""The types and codes of the vendors' errors.

The types are used for 400, and for an error within a stream, whose status is 200. Otherwise
the status decides: gateways always send a status, but not always a type.
"""

WHATEVER_STATUS: Final = {"insufficient_quota": "auth"}
"""Types that take precedence over the status: it is 429, but waiting does not help."""

BAD_REQUEST: Final = 400
FORBIDDEN: Final = 403
PROXY_WANTS_LOGIN: Final = 407
REDIRECTS: Final = range(300, 400)
UNTYPED: Final = {200: "malformed_reply", BAD_REQUEST: "invalid_request"}
"""The code for 400 and 200 with a body of another form."""

TOO_LONG: Final = re.compile(
    "prompt is too long|exceed context limit|maximum context length"
    "|input token count .* exceeds|input length exceeds|greater than the context length"
    "|exceeds the (available context size|context window)",
    re.IGNORECASE,
)
"""Texts of a 400 for a prompt that is too long: not every vendor has a type for it."""

FILTERED: Final = re.compile("blocked by content filtering policy", re.IGNORECASE)
"""Texts for a filtered answer: not every vendor has a type for it."""

LONGEST_MESSAGE: Final = 500


def fault_of(status: int, error_type: object, message: str, headers: Mapping[str, str]) -> Fault:
    """Return the error for an error of the API.

    The message, which may change, is only used to distinguish a prompt that is too long, or a
    filtered answer, from a wrong request.
    """
    # The SDK passes on any JSON value in this place.
    known_type = error_type if isinstance(error_type, str) and error_type else None
    kind = kind_of(status, known_type)
    if kind == "invalid_request" and TOO_LONG.search(message):
        kind = "context_too_long"
    if kind == "invalid_request" and FILTERED.search(message):
        kind = "content_filtered"
    said = cut(message, LONGEST_MESSAGE)
    told = f"HTTP {status}, {known_type or 'no type'}: {said}"
    if status in REDIRECTS and (where := headers.get("location")):
        fix = f"the server redirects to {where}; name its address as base_url"
        return ProviderRefusedError("invalid_request", f"HTTP {status}: {fix}")
    if is_of_proxy(status, headers):
        told = f"HTTP {status} of a proxy or firewall, not of the vendor: {said}"
        return ProviderUnavailableError("network", told)
    if kind in TRANSIENT:
        return ProviderUnavailableError(kind, told, retry_after(headers))
    named = retry_after(headers) if kind in OF_ACCOUNT else None
    return ProviderRefusedError(kind, told, retry_after=named)


def is_of_proxy(status: int, headers: Mapping[str, str]) -> bool:
    """Whether a proxy sent the answer, not the API, whose refusal of a key is JSON."""
    form = headers.get("content-type", "json")
    return status == PROXY_WANTS_LOGIN or (status == FORBIDDEN and "json" not in form)


def code_of(body: object) -> str | None:
    """Return the code of a gateway's error, which is more specific than its type."""
    error = body.get("error") if isinstance(body, Mapping) else None
    code = error.get("code") if isinstance(error, Mapping) else None
    return code if isinstance(code, str) and code in BY_TYPE else None


def error_in(text: str) -> Any:
    """Return the error in an answer, which may be in a list; None if the answer has no error."""
    try:
        body = json.loads(text)
    except ValueError:
        return None
    told = body[0] if isinstance(body, list) and body else body
    return told.get("error") if isinstance(told, Mapping) else None


def with_usage(fault: Fault, used: dict[str, int]) -> Fault:
    """Return *fault* with the usage of the failed attempt."""
    return type(fault)(fault.kind, fault.message, fault.retry_after, used)


def redact_fault(redactor: Redactor, fault: Fault) -> Fault:
    """Return *fault* without the key, or pieces of it, in its message."""
    return type(fault)(fault.kind, redactor.redact_parts(fault.message), fault.retry_after)


def kind_of(status: int, error_type: str | None) -> str:
    """Return the error code; an unknown error is permanent."""
    if error_type in WHATEVER_STATUS:
        return WHATEVER_STATUS[error_type]
    if error_type is None:
        return BY_STATUS.get(status) or UNTYPED.get(status, "unknown")
    # Servers also use other types; a 400 is a wrong request, whatever its type.
    usual = UNTYPED[status] if status == BAD_REQUEST else "unknown"
    return BY_STATUS.get(status) or BY_TYPE.get(error_type, usual)


def retry_after(headers: Mapping[str, str]) -> float | None:
    """Return the wait that the API requests, in seconds; None without one."""
    if "retry-after-ms" in headers:
        return seconds(headers["retry-after-ms"], a_second=1000)
    asked = headers.get("retry-after")
    if asked is None:
        return None
    return seconds(asked) if asked[:1].isdigit() else until(asked, headers.get("date"))


def seconds(text: str, a_second: int = 1) -> float | None:
    """Return *text*, a number in units of 1/*a_second* s, in seconds; None if it is not valid."""
    try:
        value = float(text) / a_second
    except ValueError:
        return None
    return value if 0 <= value < math.inf else None


def until(moment: str, now: str | None) -> float | None:
    """Return the seconds from *now* to *moment*, two dates of one answer."""
    # The answer's own date, not our clock: the two may be minutes apart.
    try:
        wait = parsedate_to_datetime(moment) - parsedate_to_datetime(now or "")
    except (TypeError, ValueError):
        return None
    return max(0.0, wait.total_seconds())
