"""The port of the places of sessions: this process, Ray, or none."""

import asyncio
from collections.abc import Awaitable, Callable, Collection, Coroutine, Hashable, Sequence

from cueline.actors.background_task import Trouble
from cueline.actors.live_text import LiveTextHub
from cueline.errors import CuelineError
from cueline.events.agent import AgentSpec
from cueline.events.log_url import LogUrl
from cueline.runtime.up_record import recovers


class Place:
    """The place where the sessions of a client run.

    This base class runs no sessions, but a running `cueline up` may run them. The subclasses
    `Inline`, `Command` and `Attached` run sessions.
    """

    drives = False
    """Whether this place runs its sessions itself, while its process lives."""
    live_text: LiveTextHub | None = None
    """The live text of its host in this process; None without a host."""

    def __init__(
        self, log: LogUrl, scope: set[str] | None = None, on_trouble: Trouble | None = None
    ) -> None:
        self._url = log
        self._scope = set() if scope is None else scope
        """The sessions that were started or resumed here."""
        self._report = on_trouble
        self._troubles: dict[str, CuelineError] = {}

    def hear(self, stream: str, error: CuelineError) -> None:
        """Report a new error of session *stream*; remember a lasting error."""
        if str(error) == str(self.trouble(stream)):
            return
        if not error.retryable:
            self._troubles[stream] = error
        if self._report is not None:
            self._report(stream, error)

    def trouble(self, stream: str) -> CuelineError | None:
        """Return why the session cannot be run here; None if it can be run."""
        return self._troubles.get(stream)

    def tries_again(self, stream: str) -> None:
        """Let the hosts retry the session, because it has a new message."""
        self._troubles.pop(stream, None)

    def takes_up(self, stream: str) -> bool:
        """Whether this place or a running `cueline up` will certainly activate the session."""
        return (self.drives and stream in self._scope) or recovers(self._url)

    async def take_up(self, stream: str, parent: str | None = None) -> None:
        """Run the session from now on; a *parent* that runs here is notified."""
        self._scope.add(stream)
        # A parent that runs elsewhere gets a message in its inbox.
        above = [] if parent is None or parent not in self._scope else [parent]
        await self.place([stream, *above])

    async def place(self, streams: Collection[str]) -> None:
        """Assign sessions to a host; active sessions read their inbox."""

    def has(self, incarnation: str | None) -> bool:  # noqa: ARG002 - it has no hosts
        """Whether a host of this place has the *incarnation*."""
        return False

    def settled(self, stream: str) -> Coroutine[object, object, None] | None:  # noqa: ARG002 - as above
        """Return a wait until a host of this process gives up *stream*; None if no host runs it."""
        return None

    async def check_tools(self, agents: Sequence[AgentSpec]) -> None:
        """Check that the reachable runners of this place can run the tools of *agents*.

        Raises:
            ToolImportError: a runner cannot run them; the message names the nodes, and what to do.
        """


Ask = Callable[[Sequence[AgentSpec]], Awaitable[None]]


class CheckedTools:
    """Asks runners once about the tools of an agent, and not at each start of a session.

    A new runner is asked at the next start. A refusal is not remembered, so a start
    after the tools were installed asks again.
    """

    def __init__(self) -> None:
        self._runners: dict[Hashable, set[str]] = {}
        """The incarnations of the runners that can run the tools, by question."""
        self._asking = asyncio.Lock()

    async def check(self, agents: Sequence[AgentSpec], runners: Collection[str], ask: Ask) -> None:
        """Call *ask* for the agents about which some of *runners* were not asked.

        Raises:
            ToolImportError: a runner cannot run their tools.
        """
        if not self._unchecked(agents, runners):
            return
        async with self._asking:  # if many sessions start at once, the first start asks
            if unchecked := self._unchecked(agents, runners):
                await ask(unchecked)
                for agent in unchecked:
                    self._runners.setdefault(_tools_of(agent), set()).update(runners)

    def _unchecked(
        self, agents: Sequence[AgentSpec], runners: Collection[str]
    ) -> Sequence[AgentSpec]:
        asked = set(runners)
        return [
            agent
            for agent in agents
            if agent.tools and not asked <= self._runners.get(_tools_of(agent), set())
        ]


def _tools_of(agent: AgentSpec) -> Hashable:
    """Return the parts of an agent on which a runner's answer depends."""
    tools = tuple((tool.digest, tool.target, str(tool.demands), tool.runs) for tool in agent.tools)
    return tools, str(agent.demands), agent.workspace, agent.environment, agent.secrets
