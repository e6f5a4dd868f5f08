"""What goes wrong with the log, and with what it holds or was about to hold."""

from cueline.errors.root import CuelineError


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
    """The log's file was removed, replaced or cut short while in use: stop, nothing is kept."""

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
    """The `-shm` beside the log was removed while in use: stop; what was recorded is kept."""

    def __str__(self) -> str:
        return (
            f"{self.path}: {self.reason} while it was in use; "
            "what was recorded is kept, and nothing more is done"
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
    """A recorded event is not what was appended, or was emptied; what is before it still loads."""

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


class SecretLeakError(CuelineError):
    """A secret or an unclean value was about to be recorded; nothing was written."""

    def __init__(self, subject: str, what: str) -> None:
        super().__init__(subject, what)
        self.subject = subject
        self.what = what

    def __str__(self) -> str:
        return f"{self.subject}: refused to record {self.what}"
