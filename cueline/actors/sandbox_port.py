"""The port to sandboxes: machines of their own for sessions.

A back-end's functions block; they are called in threads. Each may be repeated.
"""

from collections.abc import Collection, Mapping, Sequence
from typing import Final, Literal, Protocol, runtime_checkable

from msgspec import Struct

from cueline.events.sandbox import SandboxSpec

LOG_LABEL: Final = "cueline-log"
"""The label of a sandbox with the id of its log."""
NAME_LABEL: Final = "cueline-sandbox"
"""The label of a sandbox with its stream, which is unique in the log."""
OUTPUT_LIMIT: Final = 100 << 20
"""The number of bytes that are kept of what a command prints."""
SESSION_LABEL: Final = "cueline-session"
"""The label of a sandbox with the stream of its session."""
VOLUME_PATH: Final = "/data"
"""Where a volume is mounted."""

SandboxState = Literal["started", "stopped", "gone"]
"""`gone` is deleted, archived or broken: it never starts again."""


class FoundSandbox(Struct, frozen=True):
    """A sandbox that a back-end has."""

    place: str
    """The back-end's own name of it."""
    labels: dict[str, str]
    state: SandboxState


class Executed(Struct, frozen=True):
    """The end of a command in a sandbox."""

    exit_code: int
    """128 and the number of the signal that ended the command; 137 at its time limit."""
    output: bytes
    """What it printed and its errors, in the order in which they came; the first `OUTPUT_LIMIT`
    bytes."""
    size: int
    """The number of bytes that it printed."""
    timed_out: bool = False
    """Whether it was killed at its time limit."""


@runtime_checkable
class SandboxForks(Protocol):
    """What a back-end has in addition if a fork of a session can have its files."""

    def snapshot(self, place: str, name: str) -> None:
        """Keep the files of the sandbox as they are, under the *name* of a call."""

    def fork(self, place: str, name: str, labels: Mapping[str, str]) -> str:
        """Create a sandbox with the files of a snapshot, and return its place.

        Raises:
            SandboxError: there is no such snapshot.
        """


class SandboxBackend(Protocol):
    """What makes sandboxes: a program of this machine, or a vendor.

    Raises:
        SandboxGoneError: there is no such sandbox any more; use a fresh one.
        SandboxError: the back-end failed, or did not answer; the message says why.
    """

    def create(
        self, spec: SandboxSpec, labels: Mapping[str, str], environment: Mapping[str, str]
    ) -> str:
        """Create and start a sandbox with *labels*, whose commands have *environment*.

        Return its place. A sandbox with the same label `NAME_LABEL` that is there is started and
        returned instead, so a repetition makes no second one.
        """

    def start(self, place: str) -> None:
        """Start a stopped sandbox, with the files that it had; nothing if it is started."""

    def stop(self, place: str) -> None:
        """Stop a sandbox and all its processes, and keep its files; nothing if it is stopped."""

    def delete(self, place: str) -> None:
        """Delete a sandbox with its files; nothing if it is gone. Volumes stay."""

    def state(self, place: str) -> SandboxState:
        """Return the state of a sandbox; `gone` if there is none."""

    def find(self, labels: Mapping[str, str]) -> Collection[FoundSandbox]:
        """Return the sandboxes with all of *labels*."""

    def keep_alive(self, place: str) -> None:
        """Begin anew the time after which the back-end itself stops the sandbox."""

    def exec(
        self,
        place: str,
        command: Sequence[str],
        *,
        stdin: bytes = b"",
        environment: Mapping[str, str] | None = None,
        timeout_seconds: float,
    ) -> Executed:
        """Run a command in the sandbox's workspace, to its end or for *timeout_seconds*.

        *environment* is for this command alone. Its processes are killed when it ends.
        """

    def put(self, place: str, path: str, content: bytes) -> None:
        """Write a file, and the folders above it; *path* is relative to the workspace."""

    def get(self, place: str, path: str) -> bytes:
        """Return the content of a file.

        Raises:
            FileNotFoundError: there is none.
        """

    def volume(self, name: str) -> None:
        """Make sure that there is a volume of this name."""
