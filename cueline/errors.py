"""The errors of cueline, divided by who acts next.

```
CuelineError
├── RejectedError                the caller changes its mind
│   ├── ConfigError              mends the file, flag or variable it names
│   ├── UnknownSessionError      names a session that exists
│   ├── SessionFinishedError     forks, or starts another
│   ├── SessionOwnedError        waits for the living owner, or asks it through the inbox
│   ├── SessionUndrivenError     resumes it, or starts `cueline up`
│   ├── NotPendingError          looks at what became of the approval
│   ├── InvalidNameError         chooses another name
│   ├── ToolImportError          makes the tool importable
│   └── PathEscapeError          stays inside the workspace
├── StoreError                   the log refused, or could not
│   ├── WrongExpectedVersionError  reload, decide again
│   ├── FencedError              stop: somebody else owns the stream
│   ├── KeyReusedError           a bug: one key, two contents
│   ├── EmptyAppendError         a bug: nothing to append
│   ├── MissingBlobError         put the blob first
│   ├── BlobTooLargeError        make it smaller
│   ├── UnknownOutcomeError      ask again with the same key
│   ├── LogUnavailableError      the operator mends disk, lock or permissions
│   ├── LogLostError             stop: the log's file is not there any more
│   ├── LogFormatError           the operator upgrades cueline
│   └── CorruptEventError        the operator restores; what is before it still loads
├── UnknownEventTypeError        the operator upgrades cueline
├── LeakError                    a bug: a secret was about to be recorded
├── ProviderUnavailableError     wait, try again
├── ProviderRefusedError         do not try again
├── ToolFailedError              tell the model
├── RunnerBusyError              ask another runner, or later
├── RunnerGoneError              find out what became of the call
├── StaleOrderError              stop: the runner serves a newer owner
└── ClusterError                 the operator mends the cluster
```

Every `__init__` passes its own positional arguments on, so that each error
survives the way through a process border (Ray pickles them).
"""

from typing import ClassVar


class CuelineError(Exception):
    """The root: catch it to catch everything cueline raises on purpose."""

    retryable: ClassVar[bool] = False


class RejectedError(CuelineError):
    """The rules do not allow this now; the caller changes its mind."""

    def __init__(self, subject: str, reason: str) -> None:
        super().__init__(subject, reason)
        self.subject = subject
        self.reason = reason

    def __str__(self) -> str:
        return f"{self.subject}: {self.reason}"


class ConfigError(RejectedError):
    """A setting, an agent file or a flag is wrong; the message names it and the fix."""


class UnknownSessionError(RejectedError):
    """No such session in this log; `cueline list` shows those that are."""


class SessionFinishedError(RejectedError):
    """The session has ended; fork it, or start another."""


class SessionOwnedError(RejectedError):
    """A living process drives the session; ask it through the inbox instead."""

    def __init__(self, subject: str, machine: str, pid: int) -> None:
        super().__init__(subject, f"driven by process {pid} on {machine}")
        self.args = (subject, machine, pid)
        self.machine = machine
        self.pid = pid


class SessionUndrivenError(RejectedError):
    """Nobody drives the session, and it does not rest: resume it, or start `cueline up`."""

    def __init__(self, subject: str, why: str) -> None:
        super().__init__(
            subject,
            f"nobody drives it now ({why}); it goes on with `await runtime.resume({subject!r})`, "
            f"`cueline resume {subject}` or `cueline up`",
        )
        self.args = (subject, why)
        self.why = why


class NotPendingError(RejectedError):
    """The approval does not wait (any more); the reason holds its state."""


class InvalidNameError(RejectedError):
    """A name or id has a form that cueline does not take."""


class ToolImportError(RejectedError):
    """A tool cannot be imported by the `module:name` that was recorded."""


class PathEscapeError(RejectedError):
    """A path leads out of the workspace."""


class StoreError(CuelineError):
    """The log refused, or could not."""


class WrongExpectedVersionError(StoreError):
    """The stream moved on between our read and our append; reload, decide again."""

    retryable = True

    def __init__(self, stream: str, expected: int, actual: int) -> None:
        super().__init__(stream, expected, actual)
        self.stream = stream
        self.expected = expected
        self.actual = actual

    def __str__(self) -> str:
        return f"{self.stream}: expected version {self.expected}, found {self.actual}"


class FencedError(StoreError):
    """Somebody else owns the stream now; stop."""

    def __init__(self, stream: str, epoch: int | None, current: int) -> None:
        super().__init__(stream, epoch, current)
        self.stream = stream
        self.epoch = epoch
        self.current = current

    def __str__(self) -> str:
        held = "no epoch" if self.epoch is None else f"epoch {self.epoch}"
        return f"{self.stream}: {held} is fenced, the owner's is {self.current}"


class KeyReusedError(StoreError):
    """One idempotency key came with two different contents: a bug in the caller."""

    def __init__(self, stream: str, key: str) -> None:
        super().__init__(stream, key)
        self.stream = stream
        self.key = key

    def __str__(self) -> str:
        return f"{self.stream}: key {self.key} was used for another content"


class EmptyAppendError(StoreError):
    """An append without events: a bug in the caller."""

    def __init__(self, stream: str) -> None:
        super().__init__(stream)
        self.stream = stream

    def __str__(self) -> str:
        return f"{self.stream}: nothing to append"


class MissingBlobError(StoreError):
    """An append, or a reader, names a blob that is not there; put it first."""

    def __init__(self, stream: str, blob: str) -> None:
        super().__init__(stream, blob)
        self.stream = stream
        self.blob = blob

    def __str__(self) -> str:
        return f"{self.stream}: blob {self.blob} is not in the log"


class BlobTooLargeError(StoreError):
    """A value is too large to be kept."""

    def __init__(self, size: int, limit: int) -> None:
        super().__init__(size, limit)
        self.size = size
        self.limit = limit

    def __str__(self) -> str:
        return f"a value of {self.size:,} bytes is over the limit of {self.limit:,}"


class UnknownOutcomeError(StoreError):
    """The append may or may not be in the log; ask again with the same key."""

    retryable = True

    def __init__(self, stream: str, reason: str) -> None:
        super().__init__(stream, reason)
        self.stream = stream
        self.reason = reason

    def __str__(self) -> str:
        return f"{self.stream}: it is not known whether the append took place ({self.reason})"


class LogUnavailableError(StoreError):
    """The log's file cannot be used now: disk full, read-only, locked, network."""

    retryable = True

    def __init__(self, path: str, reason: str) -> None:
        super().__init__(path, reason)
        self.path = path
        self.reason = reason

    def __str__(self) -> str:
        return f"{self.path}: {self.reason}"


class LogLostError(StoreError):
    """The log's file was removed or replaced while in use: stop, nothing is kept any more."""

    def __init__(self, path: str, reason: str) -> None:
        super().__init__(path, reason)
        self.path = path
        self.reason = reason

    def __str__(self) -> str:
        return (
            f"{self.path}: {self.reason} while it was in use; "
            "what was recorded in it is lost, and nothing more is done"
        )


class LogFormatError(StoreError):
    """The file was written by another format of cueline; it was left untouched."""

    def __init__(self, path: str, found: int, known: int) -> None:
        super().__init__(path, found, known)
        self.path = path
        self.found = found
        self.known = known

    def __str__(self) -> str:
        way = "upgrade cueline" if self.found > self.known else "use the cueline that wrote it"
        return f"{self.path}: log format {self.found}, this cueline knows {self.known}; {way}"


class CorruptEventError(StoreError):
    """A recorded event is not what was appended; everything before it still loads."""

    def __init__(self, stream: str, version: int, position: int, reason: str) -> None:
        super().__init__(stream, version, position, reason)
        self.stream = stream
        self.version = version
        self.position = position
        self.reason = reason

    def __str__(self) -> str:
        # A row may be so damaged that only one of its two places is known.
        if not self.version:
            return f"position {self.position}: {self.reason}"
        position = f" (position {self.position})" if self.position else ""
        return f"{self.stream}@{self.version}{position}: {self.reason}"


class UnknownEventTypeError(CuelineError):
    """An event is not known here; upgrade cueline. Only its stream is set aside."""

    def __init__(self, stream: str, version: int, type: str, schema: int) -> None:  # noqa: A002 - the word of the log
        super().__init__(stream, version, type, schema)
        self.stream = stream
        self.version = version
        self.type = type
        self.schema = schema

    def __str__(self) -> str:
        return f"{self.stream}@{self.version}: unknown event {self.type} schema {self.schema}"


class LeakError(CuelineError):
    """A secret or an unclean value was about to be recorded; nothing was written."""

    def __init__(self, subject: str, what: str) -> None:
        super().__init__(subject, what)
        self.subject = subject
        self.what = what

    def __str__(self) -> str:
        return f"{self.subject}: refused to record {self.what}"


class ProviderUnavailableError(CuelineError):
    """The model cannot answer now; wait, try again.

    `kind` is one of rate_limited, overloaded, unavailable, timeout, network,
    malformed_reply. `retry_after` is what the provider asked for, in seconds;
    `used` what the attempt used all the same, in tokens, where that was told.
    """

    retryable = True

    def __init__(
        self,
        kind: str,
        message: str,
        retry_after: float | None = None,
        used: dict[str, int] | None = None,
    ) -> None:
        super().__init__(kind, message, retry_after, used)
        self.kind = kind
        self.message = message
        self.retry_after = retry_after
        self.used = used

    def __str__(self) -> str:
        return f"{self.kind}: {self.message}"


class ProviderRefusedError(CuelineError):
    """The model will not answer this request; do not try it again.

    `kind` is one of invalid_request, auth, refused, context_too_long,
    content_filtered, unknown. `used` is what the attempt used all the same, in
    tokens, where that was told.
    """

    def __init__(self, kind: str, message: str, used: dict[str, int] | None = None) -> None:
        super().__init__(kind, message, used)
        self.kind = kind
        self.message = message
        self.used = used

    def __str__(self) -> str:
        return f"{self.kind}: {self.message}"


class ToolFailedError(CuelineError):
    """A tool did not do what it was asked; the message is for the model.

    `kind` is one of tool_error, invalid_arguments, unknown_tool, killed; or, from
    a tool that says that its failure passes, rate_limited, overloaded, unavailable,
    timeout, network, malformed_reply: a call that may be repeated is tried again,
    `retry_after` seconds later at the earliest.
    """

    def __init__(self, kind: str, message: str, retry_after: float | None = None) -> None:
        super().__init__(kind, message, retry_after)
        self.kind = kind
        self.message = message
        self.retry_after = retry_after

    def __str__(self) -> str:
        return f"{self.kind}: {self.message}"


class RunnerBusyError(CuelineError):
    """The runner took nothing on; ask another, or this one later."""

    retryable = True

    def __init__(self, runner: str) -> None:
        super().__init__(runner)
        self.runner = runner

    def __str__(self) -> str:
        return f"runner {self.runner} is busy"


class RunnerGoneError(CuelineError):
    """The runner cannot be reached; the call may or may not have run."""

    retryable = True

    def __init__(self, runner: str, reason: str) -> None:
        super().__init__(runner, reason)
        self.runner = runner
        self.reason = reason

    def __str__(self) -> str:
        return f"runner {self.runner} cannot be reached: {self.reason}"


class StaleOrderError(CuelineError):
    """The order names another incarnation, or an epoch below one already served."""

    def __init__(self, runner: str, stream: str, epoch: int, current: int) -> None:
        super().__init__(runner, stream, epoch, current)
        self.runner = runner
        self.stream = stream
        self.epoch = epoch
        self.current = current

    def __str__(self) -> str:
        return (
            f"runner {self.runner} refused an order for {self.stream}: "
            f"epoch {self.epoch}, it serves {self.current}"
        )


class ClusterError(CuelineError):
    """The Ray cluster is not there, not ours, or not usable; the message says what to do."""

    def __init__(self, address: str, reason: str) -> None:
        super().__init__(address, reason)
        self.address = address
        self.reason = reason

    def __str__(self) -> str:
        return f"{self.address}: {self.reason}"
