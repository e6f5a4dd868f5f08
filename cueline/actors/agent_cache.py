"""What the sessions of one agent share: the agent, its log, its model."""

from collections.abc import Callable
from contextlib import suppress
from typing import TypeVar

from cueline.actors.cancellation import isolate_cancellation
from cueline.actors.model_port import Model, ModelFactory
from cueline.events.agent import AgentSpec, answering
from cueline.events.journal import Journal
from cueline.events.sanitize import Redactor, sanitize_record
from cueline.events.session import SessionEvent

UNUSED = 16
"""So many outfits are kept for agents that no session uses just now."""

Fact = TypeVar("Fact", bound=SessionEvent)


class LoadedAgent:
    """One agent as it is used here, however many sessions it has."""

    def __init__(
        self, key: str, agent: AgentSpec, journal: Journal, redactor: Redactor, make: ModelFactory
    ) -> None:
        self.key = key
        self.agent = agent
        self.tools = {tool.name: tool for tool in agent.tools}
        self.estimates = any(tool.estimates for tool in agent.tools)
        """Whether there is a tool that says what a call will cost."""
        self.journal = journal
        """The log, cleaned of this agent's secrets."""
        self.redactor = redactor
        self._make = make
        self._models: dict[int, tuple[AgentSpec, Model]] = {}

    def model(self, fallback: int) -> tuple[AgentSpec, Model]:
        """Return the agent as it asks, and whom it asks: 0 its own model, n its n-th fallback.

        A model is made when it is first asked.

        Raises:
            ConfigError: it cannot be made here; mend what the message names.
        """
        if fallback not in self._models:
            asking = answering(self.agent, fallback)
            self._models[fallback] = asking, self._make(asking)
        return self._models[fallback]

    def clean(self, fact: Fact) -> Fact:
        """Return *fact* without secrets and without what cannot be kept (I11)."""
        return sanitize_record(fact, self.redactor)

    async def close(self) -> None:
        """Let go of connections; that one cannot be closed is not its sessions' trouble."""
        for _, model in self._models.values():
            with suppress(Exception):
                await isolate_cancellation(model.close())


class AgentCache:
    """One outfit an agent: equal agents of a thousand sessions are in memory once."""

    def __init__(
        self,
        journal: Callable[[AgentSpec], Journal],
        redactor: Callable[[AgentSpec], Redactor],
        models: ModelFactory,
    ) -> None:
        self._journal = journal
        self._redactor = redactor
        self._models = models
        self._agent_cache: dict[str, LoadedAgent] = {}
        self._users: dict[str, int] = {}
        self._unused: dict[str, None] = {}
        """In the order in which they fell out of use."""

    def take(self, agent: AgentSpec) -> LoadedAgent:
        """Return what *agent* uses; to be given back."""
        key = agent.model_dump_json()
        if key not in self._agent_cache:
            self._agent_cache[key] = LoadedAgent(
                key, agent, self._journal(agent), self._redactor(agent), self._models
            )
        self._users[key] = self._users.get(key, 0) + 1
        self._unused.pop(key, None)
        return self._agent_cache[key]

    async def give_back(self, loaded_agent: LoadedAgent) -> None:
        """Say that a session does not use *outfit* any more."""
        key = loaded_agent.key
        self._users[key] -= 1
        if self._users[key] == 0:
            del self._users[key]
            self._unused[key] = None
        while len(self._unused) > UNUSED:
            oldest = next(iter(self._unused))
            del self._unused[oldest]
            await self._agent_cache.pop(oldest).close()

    async def close(self) -> None:
        """Let go of all connections."""
        for loaded_agent in self._agent_cache.values():
            await loaded_agent.close()
