"""Checks once whether runners can run the tools of an agent."""

import asyncio
from collections.abc import Awaitable, Callable, Collection, Hashable, Sequence

from cueline.events.agent import AgentSpec

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
        async with self._asking:  # of many starts at once the first asks
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
