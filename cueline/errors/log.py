"""Errors of the log and its content."""

from cueline.errors.root import CuelineError


class StoreError(CuelineError):
    """The log refused, or failed."""


class WrongExpectedVersionError(StoreError):
    """The stream has new events since it was read; read again, decide again."""

    retryable = True

    def __init__(self, stream: str, expected: int, actual: int) -> None:
        super().__init__(stream, expected, actual)
        self.stream = stream
        self.expected = expected
        self.actual = actual

    def __str__(self) -> str:
        return f"{self.stream}: expected version {self.expected}, found {self.actual}"


class FencedError(StoreError):
    """Another process owns the stream now; stop."""

    def __init__(self, stream: str, epoch: int | None, current: int) -> None:
        super().__init__(stream, epoch, current)
        self.stream = stream
        self.epoch = epoch
        self.current = current

    def __str__(self) -> str:
        held = "no epoch" if self.epoch is None else f"epoch {self.epoch}"
        return f"{self.stream}: {held} is fenced, the owner's is {self.current}"


class KeyReusedError(StoreError):
    """One idempotency key came with two contents: a bug in the caller."""

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
    """An append, or a reader, names a blob that does not exist; store it first."""

    def __init__(self, stream: str, blob: str) -> None:
        super().__init__(stream, blob)
        self.stream = stream
        self.blob = blob

    def __str__(self) -> str:
        return f"{self.stream}: blob {self.blob} is not in the log"


class BlobTooLargeError(StoreError):
    """A value is too large to be stored."""

    def __init__(self, size: int, limit: int) -> None:
        super().__init__(size, limit)
        self.size = size
        self.limit = limit

    def __str__(self) -> str:
        return f"a value of {self.size:,} bytes is over the limit of {self.limit:,}"


class UnknownOutcomeError(StoreError):
    """The append may or may not be in the log; repeat it with the same key."""

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
    """The log's file was removed, replaced or cut while in use: stop, nothing more is stored."""

    def __init__(self, path: str, reason: str) -> None:
        super().__init__(path, reason)
        self.path = path
        self.reason = reason

    def __str__(self) -> str:
        return (
            f"{self.path}: {self.reason} while it was in use; "
            "what was recorded in it is lost, and nothing more is done"
        )


class LogIndexLostError(LogLostError):
    """The `-shm` beside the log was removed while in use: stop; recorded events are kept."""

    def __str__(self) -> str:
        return (
            f"{self.path}: {self.reason} while it was in use; "
            "what was recorded is kept, and nothing more is done"
        )


class LogFormatError(StoreError):
    """Another format of cueline wrote the file; it is unchanged."""

    def __init__(self, path: str, found: int, known: int) -> None:
        super().__init__(path, found, known)
        self.path = path
        self.found = found
        self.known = known

    def __str__(self) -> str:
        way = "upgrade cueline" if self.found > self.known else "use the cueline that wrote it"
        return f"{self.path}: log format {self.found}, this cueline knows {self.known}; {way}"


class CorruptEventError(StoreError):
    """A recorded event is damaged or redacted; earlier events still load."""

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
    """An event's type is unknown here; upgrade cueline. Only its stream is affected."""

    def __init__(self, stream: str, version: int, type: str, schema: int) -> None:  # noqa: A002 - the field's name in the log
        super().__init__(stream, version, type, schema)
        self.stream = stream
        self.version = version
        self.type = type
        self.schema = schema

    def __str__(self) -> str:
        return f"{self.stream}@{self.version}: unknown event {self.type} schema {self.schema}"


class SecretLeakError(CuelineError):
    """A secret or unsanitized value was about to be recorded; nothing was written."""

    def __init__(self, subject: str, what: str) -> None:
        super().__init__(subject, what)
        self.subject = subject
        self.what = what

    def __str__(self) -> str:
        return f"{self.subject}: refused to record {self.what}"
