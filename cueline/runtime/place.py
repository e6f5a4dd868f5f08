"""The port to where sessions run: in this process, on Ray, or nowhere."""

from collections.abc import Collection, Coroutine, Sequence

from cueline.actors.background_task import Trouble
from cueline.actors.live_text import LiveTextHub
from cueline.config.environment import user_name
from cueline.errors import CuelineError
from cueline.events.agent import AgentSpec
from cueline.events.log_url import LogUrl
from cueline.runtime.up_record import recovers


class Place:
    """Where the sessions of a client run. This one runs none; a running `cueline up` may.

    `Inline`, `Command` and `Attached` run sessions.
    """

    drives = False
    """Whether it runs its sessions itself, as long as its process lives."""
    live_text: LiveTextHub | None = None
    """The hub of its host in this process; None without one."""

    def __init__(
        self, log: LogUrl, scope: set[str] | None = None, on_trouble: Trouble | None = None
    ) -> None:
        self._url = log
        self._scope = set() if scope is None else scope
        """The sessions that were started or resumed here."""
        self._report = on_trouble
        self._troubles: dict[str, CuelineError] = {}

    @property
    def user(self) -> str:
        """The name of the user of this process."""
        return user_name()

    def hear(self, stream: str, error: CuelineError) -> None:
        """Report an error that is new; remember an error that does not pass by itself."""
        if str(error) == str(self.trouble(stream)):
            return
        if not error.retryable:
            self._troubles[stream] = error
        if self._report is not None:
            self._report(stream, error)

    def trouble(self, stream: str) -> CuelineError | None:
        """Return why the session cannot be run here; None if it can."""
        return self._troubles.get(stream)

    def tries_again(self, stream: str) -> None:
        """Let the hosts retry the session, because it gets a message."""
        self._troubles.pop(stream, None)

    def takes_up(self, stream: str) -> bool:
        """Whether this place or a running `cueline up` will activate the session for certain."""
        return (self.drives and stream in self._scope) or recovers(self._url)

    async def take_up(self, stream: str, parent: str | None = None) -> None:
        """Run the session from now on; a *parent* that runs here learns of it."""
        self._scope.add(stream)
        # A parent that runs elsewhere hears of it through its inbox.
        above = [] if parent is None or parent not in self._scope else [parent]
        await self.place([stream, *above])

    async def place(self, streams: Collection[str]) -> None:
        """Give sessions to a host, or have those that live look into their inbox."""

    def has(self, incarnation: str | None) -> bool:  # noqa: ARG002 - it has no hosts
        """Whether the incarnation is one of its hosts."""
        return False

    def settled(self, stream: str) -> Coroutine[object, object, None] | None:  # noqa: ARG002 - as above
        """Return what waits until a host in this process has let go of a session it runs."""
        return None

    async def check_tools(self, agents: Sequence[AgentSpec]) -> None:
        """Check that its runners can run the tools of *agents*, as far as it reaches them.

        Raises:
            ToolImportError: some cannot; the message names their nodes and says what to do.
        """
