"""What the rules do not allow: the caller changes its mind."""

from cueline.errors.root import CuelineError


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


class ToolChangedError(ToolImportError):
    """A tool is another than was recorded; the message says in what. Nothing has run."""


class PathEscapeError(RejectedError):
    """A path leads out of the workspace, or to a log."""
