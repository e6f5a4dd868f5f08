"""Errors of models and tools."""

from cueline.errors.root import CuelineError


class ProviderUnavailableError(CuelineError):
    """The model cannot answer now; wait and try again.

    `kind` is one of rate_limited, overloaded, unavailable, timeout, network,
    malformed_reply. `retry_after` is the wait that the provider asked for, in seconds;
    `used` the known usage of the attempt, in tokens.
    """

    retryable = True
    kind: str
    message: str
    retry_after: float | None = None
    used: dict[str, int] | None = None
    text = "{kind}: {message}"


class ProviderRefusedError(CuelineError):
    """The model refuses this request; do not try it again.

    `kind` is one of invalid_request, auth, refused, context_too_long,
    content_filtered, unknown. `used` is the known usage of the attempt, in tokens;
    `retry_after` says for how many seconds the key is refused, if `kind` is auth.
    """

    kind: str
    message: str
    retry_after: float | None = None
    used: dict[str, int] | None = None
    text = "{kind}: {message}"


class ToolFailedError(CuelineError):
    """A tool failed; the message is for the model.

    `kind` is one of tool_error, invalid_arguments, unknown_tool, killed; or, from a tool
    with a transient failure, rate_limited, overloaded, unavailable, timeout, network,
    malformed_reply. Then a repeatable call is retried, after `retry_after` seconds at the
    earliest.
    """

    kind: str
    message: str
    retry_after: float | None = None
    text = "{kind}: {message}"
