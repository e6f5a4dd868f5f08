"""Errors of the log and its content."""

from cueline.errors.root import CuelineError


class StoreError(CuelineError):
    """The log refused a request, or failed."""


class WrongExpectedVersionError(StoreError):
    """The stream has new events since it was read; read again, decide again."""

    retryable = True
    stream: str
    expected: int
    actual: int
    text = "{stream}: expected version {expected}, found {actual}"


class FencedError(StoreError):
    """Another process owns the stream now; stop."""

    stream: str
    epoch: int | None
    current: int

    def __str__(self) -> str:
        held = "no epoch" if self.epoch is None else f"epoch {self.epoch}"
        return f"{self.stream}: {held} is fenced, the owner's is {self.current}"


class KeyReusedError(StoreError):
    """One idempotency key came with two contents: a bug in the caller."""

    stream: str
    key: str
    text = "{stream}: key {key} was used for another content"


class EmptyAppendError(StoreError):
    """An append without events: a bug in the caller."""

    stream: str
    text = "{stream}: nothing to append"


class MissingBlobError(StoreError):
    """An append, or a reader, names a blob that does not exist; store it first."""

    stream: str
    blob: str
    text = "{stream}: blob {blob} is not in the log"


class BlobTooLargeError(StoreError):
    """A value is larger than the largest blob; store a smaller value."""

    size: int
    limit: int
    text = "a value of {size:,} bytes is over the limit of {limit:,}"


class UnknownOutcomeError(StoreError):
    """The append may or may not be in the log; repeat it with the same key."""

    retryable = True
    stream: str
    reason: str
    text = "{stream}: it is not known whether the append took place ({reason})"


class LogUnavailableError(StoreError):
    """The log's file cannot be used now: disk full, read-only, locked, network."""

    retryable = True
    path: str
    reason: str
    text = "{path}: {reason}"


class LogLostError(StoreError):
    """The log's file was removed, replaced or cut while in use: stop, nothing more is stored."""

    path: str
    reason: str
    text = (
        "{path}: {reason} while it was in use; "
        "what was recorded in it is lost, and nothing more is done"
    )


class LogIndexLostError(LogLostError):
    """The log's `-shm` file was removed while in use: stop; recorded events are kept."""

    text = (
        "{path}: {reason} while it was in use; what was recorded is kept, and nothing more is done"
    )


class LogFormatError(StoreError):
    """The log's file has the format of another cueline; the file is unchanged."""

    path: str
    found: int
    known: int

    def __str__(self) -> str:
        way = "upgrade cueline" if self.found > self.known else "use the cueline that wrote it"
        return f"{self.path}: log format {self.found}, this cueline knows {self.known}; {way}"


class CorruptEventError(StoreError):
    """A recorded event is damaged or redacted; earlier events still load."""

    stream: str
    version: int
    position: int
    reason: str

    def __str__(self) -> str:
        # A row may be so damaged that only one of its two places is known.
        if not self.version:
            return f"position {self.position}: {self.reason}"
        position = f" (position {self.position})" if self.position else ""
        return f"{self.stream}@{self.version}{position}: {self.reason}"


class UnknownEventTypeError(CuelineError):
    """An event has a type that this cueline cannot read; upgrade. Other streams still load."""

    stream: str
    version: int
    type: str
    schema: int
    text = "{stream}@{version}: unknown event {type} schema {schema}"


class SecretLeakError(CuelineError):
    """A secret or unsanitized value was about to be recorded; nothing was written."""

    subject: str
    what: str
    text = "{subject}: refused to record {what}"
