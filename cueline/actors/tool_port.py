"""The port to what agents may do."""

from typing import Literal, Protocol

from msgspec import Struct
from pydantic import JsonValue

from cueline.events.agent import ToolSpec, Workspace


class ToolOrder(Struct, frozen=True, kw_only=True):
    """Exactly what is to be run, and on whose word."""

    session: str
    """The session's stream."""
    effect: str
    attempt: int
    key: str
    """The idempotency key, `<stream>/<effect>`: the same for every attempt."""
    runner: str
    """The only incarnation that may run it."""
    epoch: int
    """The session's, a fence: a runner refuses any lower than the highest it saw."""
    tool: ToolSpec
    arguments: dict[str, JsonValue]
    workspace: Workspace | None
    digest: str
    """What was asked for and granted; the runner computes it again (I9)."""
    secrets: tuple[str, ...] = ()
    """Names of environment variables that a tool does not see."""
    environment: tuple[str, ...] = ()
    """Names of those that it sees all the same, and though they look like credentials."""


class ToolOutput(Struct, frozen=True):
    """What a tool brought back, as bytes that nobody cleaned yet."""

    content: bytes
    seconds: float
    truncated_from: int | None = None
    """The size of the whole output, when more came than is kept, in bytes."""


class ReconcileFinding(Struct, frozen=True):
    """What a tool's `reconcile` says of a call whose outcome is unknown."""

    outcome: Literal["happened", "did_not_happen", "unknown"]
    output: str = ""


class ToolExecutor(Protocol):
    """Runs tools; everything it started dies with it, however it dies."""

    async def call(self, order: ToolOrder) -> ToolOutput:
        """Run the tool and return its output.

        Cancelling terminates the tool's processes, and kills them 5 s later.

        Raises:
            ToolFailedError: tell the model; kinds tool_error, timeout,
                invalid_arguments, killed.
            ToolImportError: there is no such tool here.
        """
        ...

    async def reconcile(self, order: ToolOrder) -> ReconcileFinding:
        """Ask the tool's `reconcile` what became of the call with this key.

        Raises:
            ToolFailedError: it could not say.
        """
        ...

    async def close(self) -> None:
        """Kill what still runs."""
        ...
