"""The port to tools."""

from collections.abc import Callable
from typing import Any, Final, Literal, Protocol

from msgspec import Struct

from cueline.events.agent import ToolSpec, Workspace
from cueline.events.agent_parts import DEFAULT_ISOLATION, Isolation, McpServer
from cueline.events.input_request import InputRequest
from cueline.events.sandbox import SandboxSpec


class GivenInput(Struct, frozen=True):
    """A person's answer to what a call asked for, and what the call gets back with it."""

    digest: str
    """The digest of the requests that were answered."""
    answers: dict[str, Any]
    """The answers by key."""
    state: str = ""
    """What the tool said to be given back; empty if it cannot be read here."""


class TaskOrder(Struct, frozen=True):
    """What is wanted of the task of a deferred call."""

    handle: str
    """The task's name; empty if it cannot be read here."""
    cancel: bool = False
    """Whether the server is told first that nobody needs the task any more."""


class SandboxPlace(Struct, frozen=True):
    """The sandbox in which a call runs."""

    spec: SandboxSpec
    place: str
    """The back-end's name of it."""


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
    arguments: dict[str, Any]
    workspace: Workspace | None
    digest: str
    """The digest of the granted call; the runner computes it again (I9)."""
    secrets: tuple[str, ...] = ()
    """Environment variables that a tool does not see."""
    environment: tuple[str, ...] = ()
    """Environment variables that a tool sees although they look like credentials."""
    isolation: Isolation = DEFAULT_ISOLATION
    """What the commands of the tool can reach."""
    server: McpServer | None = None
    """The MCP server that has the tool."""
    given: GivenInput | None = None
    """The answer to what an earlier attempt asked for."""
    task: TaskOrder | None = None
    """The task whose state is asked for instead of a new call; None: the tool is called."""
    called_before: bool = False
    """Whether the session has called a tool of this server before."""
    overlay: str = ""
    """The folder that gets what isolated commands change; empty: the workspace gets it."""
    sandbox: SandboxPlace | None = None
    """The sandbox that has the workspace of the call; None: it runs at the runner."""
    traceparent: str = ""
    """The trace of the session, and the span of this attempt."""


OnProgress = Callable[[ToolOrder, float | None, str], None]
"""Gets the progress of a running call: the done share, from 0 to 1 or None, and a text."""


def drop_progress_of(order: ToolOrder, share: float | None, text: str) -> None:
    """Drop the progress: there is no way to those who watch."""


JSON: Final = "application/json"
"""The media type of a result that is no text."""


class FileImage(Struct, frozen=True):
    """A file that a call changed, with its bytes before the change; not sanitized yet."""

    path: str
    """Its path, relative to the workspace."""
    before_digest: str
    """The sha256 of its content before, in hex; empty: there was no file."""
    after_digest: str
    """The sha256 of its content after, in hex; empty: it was deleted."""
    mode: int | None = None
    """Its permissions before; None: there was no file."""
    before: bytes | None = None
    """Its content before; None: there was no file, or the content is not kept."""


class ToolOutput(Struct, frozen=True):
    """The output of a tool, as bytes that are not sanitized yet."""

    content: bytes
    seconds: float
    truncated_from: int | None = None
    """The size of the whole output in bytes, if not all of it is kept."""
    media_type: str = ""
    """The media type of an image, or `JSON`; empty: the content is text."""
    changes: tuple[FileImage, ...] = ()
    """The files that the call changed, if the tool records them; in order."""
    text: bytes = b""
    """The text beside an image."""


class ToolQuestion(Struct, frozen=True):
    """What a tool asks a person for; the call has had no effect yet."""

    requests: tuple[InputRequest, ...]
    state: str = ""
    """What the tool gets back unchanged with the answer."""
    paths: tuple[str, ...] = ()
    """The files that the call would change, if its tool holds changes."""


class ToolTask(Struct, frozen=True):
    """The task of a server in which a call goes on."""

    handle: str
    poll_seconds: float = 0.0
    """The least time to the next poll."""
    ttl_seconds: float | None = None
    """How long the server keeps the task, from its beginning; None: it does not say."""


class ReconcileFinding(Struct, frozen=True):
    """The finding of a tool's `reconcile` about a call with unknown outcome."""

    outcome: Literal["happened", "did_not_happen", "unknown"]
    output: str = ""


class ToolExecutor(Protocol):
    """Runs tools; if the executor dies, all processes that it started die with it."""

    async def call(self, order: ToolOrder) -> ToolOutput | ToolQuestion | ToolTask:
        """Run the tool and return its output, what it asks a person for, or its task.

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
