"""The base class of all errors, the errors of effects, and the errors between processes."""

from inspect import get_annotations
from typing import ClassVar, dataclass_transform


@dataclass_transform()
class CuelineError(Exception):
    """The base class of all errors that cueline raises on purpose.

    The annotations of an error class are the arguments and the attributes of the error.
    """

    retryable: ClassVar[bool] = False
    text: ClassVar[str] = ""
    """The template of the message, with attributes in braces."""
    names: ClassVar[tuple[str, ...]] = ()

    def __init_subclass__(cls) -> None:
        cls.names = (*cls.names, *get_annotations(cls))

    def __init__(self, *values: object, **named: object) -> None:
        given = dict(zip(self.names, values, strict=False)) | named
        every = {name: given[name] if name in given else getattr(self, name) for name in self.names}
        # All of them: Ray pickles an error, which then is made of its `args`.
        super().__init__(*(every.values() if self.names else values))
        vars(self).update(every)

    def __str__(self) -> str:
        return self.text.format(**vars(self)) if self.text else super().__str__()

    def to_json(self) -> dict[str, object]:
        """Return the error's name, message, values, and whether a retry can succeed, as JSON."""
        values = {name: each for name, each in vars(self).items() if isinstance(each, str | int)}
        return {
            "error": type(self).__name__,
            "message": str(self),
            "retryable": self.retryable,
            **values,
        }


class ProviderUnavailableError(CuelineError):
    """The model cannot answer now; wait, then send the request again.

    `kind` is one of rate_limited, overloaded, unavailable, timeout, network,
    malformed_reply. `retry_after` is the wait that the provider requested, in seconds;
    `used` the known usage of the attempt, in tokens.
    """

    retryable = True
    kind: str
    message: str
    retry_after: float | None = None
    used: dict[str, int] | None = None
    text = "{kind}: {message}"


class ProviderRefusedError(CuelineError):
    """The model refuses this request; do not send the request again.

    `kind` is one of invalid_request, auth, refused, context_too_long,
    content_filtered, unknown. `used` is the known usage of the attempt, in tokens;
    `retry_after` is the time for which the key is refused, in seconds, if `kind` is auth.
    """

    kind: str
    message: str
    retry_after: float | None = None
    used: dict[str, int] | None = None
    text = "{kind}: {message}"


class ToolFailedError(CuelineError):
    """A tool failed; the message is for the model.

    `kind` is one of tool_error, invalid_arguments, unknown_tool, killed; retry, if the model
    is to call the tool again as the message says; or, from a tool with a transient failure,
    rate_limited, overloaded, unavailable, timeout, network, malformed_reply. Then a
    repeatable call is retried, after `retry_after` seconds at the earliest.
    """

    kind: str
    message: str
    retry_after: float | None = None
    text = "{kind}: {message}"


class SandboxError(CuelineError):
    """The back-end of a sandbox failed, or did not answer; nothing is known of the act."""

    place: str
    reason: str
    text = "sandbox {place}: {reason}"


class SandboxGoneError(SandboxError):
    """The sandbox is deleted, archived or broken; use a fresh one."""


class RunnerBusyError(CuelineError):
    """The runner did not start the call; use another runner, or try later."""

    retryable = True
    runner: str
    text = "runner {runner} is busy"


class RunnerGoneError(CuelineError):
    """The runner cannot be reached; the call may or may not have run."""

    retryable = True
    runner: str
    reason: str
    text = "runner {runner} cannot be reached: {reason}"


class HostsFullError(CuelineError):
    """Sessions have work, but all hosts are full; the dispatcher retries every second."""

    retryable = True
    sessions: int
    hosts: int
    text = (
        "{sessions} sessions have work, and no host has a place for them ({hosts} "
        "hosts are full or drain); they wait. More hosts: `cueline scale --hosts N`"
    )


class StaleOrderError(CuelineError):
    """The order names another incarnation, or an older epoch than an earlier order."""

    runner: str
    stream: str
    epoch: int
    current: int
    text = "runner {runner} refused an order for {stream}: epoch {epoch}, it serves {current}"


class ClusterError(CuelineError):
    """The Ray cluster is missing, unusable, or another program's; the message says what to do."""

    address: str
    reason: str
    text = "{address}: {reason}"


class TelemetryError(CuelineError):
    """The back-end for telemetry did not accept what was sent to it; send it again later."""

    retryable = True
    endpoint: str
    reason: str
    text = "{endpoint}: {reason}"
