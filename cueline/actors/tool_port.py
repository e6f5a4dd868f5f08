"""The port to tools."""

from typing import Final, Literal, Protocol

from msgspec import Struct
from pydantic import JsonValue

from cueline.events.agent import ToolSpec, Workspace


class ToolOrder(Struct, frozen=True, kw_only=True):
    """A tool call for one runner to run, with the epoch of the session's owner."""

    session: str
    """The session's stream."""
    effect: str
    attempt: int
    key: str
    """The idempotency key, `<stream>/<effect>`: the same for every attempt."""
    runner: str
    """The incarnation of the runner, which alone may run the call."""
    epoch: int
    """The session's epoch: a runner refuses an epoch below the highest that it has seen."""
    tool: ToolSpec
    arguments: dict[str, JsonValue]
    workspace: Workspace | None
    digest: str
    """The digest of the granted call; the runner computes it again (I9)."""
    secrets: tuple[str, ...] = ()
    """Environment variables that a tool does not see."""
    environment: tuple[str, ...] = ()
    """Environment variables that a tool sees although they look like credentials."""


JSON: Final = "application/json"
"""The media type of a result that is no text."""


class ToolOutput(Struct, frozen=True):
    """The output of a tool, as bytes that are not sanitized yet."""

    content: bytes
    seconds: float
    truncated_from: int | None = None
    """The size of the whole output in bytes, if not all of it is kept."""
    media_type: str = ""
    """The media type of an image, or `JSON`; empty: the content is text."""


class ReconcileFinding(Struct, frozen=True):
    """The finding of a tool's `reconcile` about a call with unknown outcome."""

    outcome: Literal["happened", "did_not_happen", "unknown"]
    output: str = ""


class ToolExecutor(Protocol):
    """Runs tools; if the executor dies, all processes that it started die with it."""

    async def call(self, order: ToolOrder) -> ToolOutput:
        """Run the tool and return its output.

        Cancelling terminates the tool's processes, and kills them after 5 s.

        Raises:
            ToolFailedError: the call failed; its kind is `tool_error`, `timeout`,
                `invalid_arguments` or `killed`.
            ToolImportError: there is no such tool here.
        """

    async def reconcile(self, order: ToolOrder) -> ReconcileFinding:
        """Ask the tool's `reconcile` for the outcome of the call with this key.

        Raises:
            ToolFailedError: `reconcile` failed.
        """

    async def close(self) -> None:
        """Kill the running calls."""
