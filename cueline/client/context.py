"""What a client knows of who drives the sessions of its log."""

from collections.abc import Coroutine, Sequence
from dataclasses import dataclass
from typing import Protocol

from cueline.actors.fold import SessionCache
from cueline.actors.live_text import LiveTextHub
from cueline.config.environment import user_name
from cueline.errors import CuelineError
from cueline.events.agent import AgentSpec
from cueline.up_record import recovers
from cueline.wiring import OpenLog


class RuntimeContext(Protocol):
    """What the process knows about the sessions that it drives, and about their owners."""

    @property
    def user(self) -> str:
        """The name of the user of this process."""

    @property
    def drives(self) -> bool:
        """Whether it drives sessions itself while it runs."""

    @property
    def live_text(self) -> LiveTextHub | None:
        """The hub of the host in this process; None without one."""

    def trouble(self, stream: str) -> CuelineError | None:
        """Return why the session cannot be driven here; None if it can."""

    def tries_again(self, stream: str) -> None:
        """Let the hosts retry the session, because it gets a message."""

    def takes_up(self, stream: str) -> bool:
        """Whether this process or a running `cueline up` will activate the session for certain."""

    def has(self, incarnation: str | None) -> bool:
        """Whether the incarnation is one of its own hosts."""

    def settled(self, stream: str) -> Coroutine[object, object, None] | None:
        """Return a coroutine that waits until a local host has stopped driving, if one drives."""

    async def check_tools(self, agents: Sequence[AgentSpec]) -> None:
        """Check that the runners here can run the tools of *agents*.

        Raises:
            ToolImportError: some cannot; the message names their nodes and says what to do.
        """

    async def take_up(self, stream: str, parent: str | None = None) -> None:
        """Drive the session from now on; a *parent* driven here learns of it."""


@dataclass(frozen=True, slots=True)
class NoRuntimeContext:
    """Drives nothing: sessions go on where a running `cueline up` or another process has them.

    See `RuntimeContext` for what each method says.
    """

    log: OpenLog

    @property
    def user(self) -> str:
        return user_name()

    @property
    def drives(self) -> bool:
        return False

    @property
    def live_text(self) -> None:
        """See `RuntimeContext`."""

    def trouble(self, stream: str) -> CuelineError | None:  # noqa: ARG002 - no host reports here
        return None

    def tries_again(self, stream: str) -> None:
        """See `RuntimeContext`."""

    def takes_up(self, stream: str) -> bool:  # noqa: ARG002 - an `up` takes up all of them
        return recovers(self.log.url)

    def has(self, incarnation: str | None) -> bool:  # noqa: ARG002 - no host is its own
        return False

    def settled(self, stream: str) -> Coroutine[object, object, None] | None:  # noqa: ARG002 - as above
        return None

    async def check_tools(self, agents: Sequence[AgentSpec]) -> None:
        """Do nothing: no runner is reached from here."""

    async def take_up(self, stream: str, parent: str | None = None) -> None:
        """Do nothing: what was recorded counts when the session is next driven."""


class Connection(Protocol):
    """An open log, and who drives its sessions: what a wish needs of a client."""

    log: OpenLog
    context: RuntimeContext
    cache: SessionCache

    async def find(self, name: str) -> str:
        """Return the stream of the session with this id, unique beginning of an id, or stream."""
