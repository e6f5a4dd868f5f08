"""Caches the objects that all sessions of one agent share: agent, journal and models."""

from collections.abc import Callable
from contextlib import suppress
from typing import TypeVar

from cueline.actors.background_task import isolate_cancellation
from cueline.actors.model_port import Model, ModelFactory
from cueline.events.agent import AgentSpec, answering, own_model
from cueline.events.journal import Journal
from cueline.events.sanitize import sanitize_record
from cueline.events.session import SessionEvent
from cueline.events.start import starts_child

UNUSED = 16
"""Number of unused agents that are kept."""

Fact = TypeVar("Fact", bound=SessionEvent)


class LoadedAgent:
    """One agent, loaded once for all its sessions on this host."""

    def __init__(
        self,
        key: str,
        agent: AgentSpec,
        journal: Callable[[AgentSpec], Journal],
        make: ModelFactory,
    ) -> None:
        self.key = key
        self.agent = agent
        self.tools = {tool.name: tool for tool in agent.tools}
        self.estimates = any(tool.estimates for tool in agent.tools)
        """Whether a tool estimates the cost of its calls."""
        self.delegates = any(map(starts_child, agent.tools))
        """Whether a tool starts child sessions."""
        self.journal = journal(agent)
        """The journal of the log, which removes this agent's secrets from facts."""
        self.redactor = self.journal.redactor
        self._journal, self._make = journal, make
        self._asking: dict[int, AgentSpec] = {}
        self._models: dict[Model, None] = {}

    def differs_from(self, agent: AgentSpec) -> bool:
        """Whether *agent* has another model or other tools."""
        if agent is self.agent:
            return False
        return agent.tools != self.agent.tools or own_model(agent) != own_model(self.agent)

    def model(self, fallback: int) -> tuple[AgentSpec, Model]:
        """Return the agent and the model for the number *fallback*; 0 is the agent's main model.

        If the key of the model has been replaced, this returns a new model, and the journal
        also removes the new key.

        Raises:
            ConfigError: the model cannot be made; the message says what to change.
        """
        if fallback not in self._asking:
            asking = answering(self.agent, fallback)
            shown = tuple([tool for tool in asking.tools if not tool.searched])
            if len(shown) < len(asking.tools):
                asking = asking.model_copy(update={"tools": shown})
            self._asking[fallback] = asking
        asking = self._asking[fallback]
        model = self._make(asking)
        if model not in self._models:
            self.journal = self._journal(self.agent)
            self.redactor = self.journal.redactor
        self._models[model] = None
        return asking, model

    def clean(self, fact: Fact) -> Fact:
        """Return *fact* without secrets and without text that cannot be recorded (I11)."""
        return sanitize_record(fact, self.redactor)

    async def close(self) -> None:
        """Close the models' connections; errors are ignored."""
        for model in self._models:
            with suppress(Exception):
                await isolate_cancellation(model.close())


class AgentCache:
    """Caches loaded agents: equal agents of many sessions are in memory once."""

    def __init__(
        self,
        journal: Callable[[AgentSpec], Journal],
        models: ModelFactory,
    ) -> None:
        self._journal = journal
        self._models = models
        self._agent_cache: dict[str, LoadedAgent] = {}
        self._users: dict[str, int] = {}
        self._unused: dict[str, None] = {}
        """The loaded agents, least recently used first."""

    def take(self, agent: AgentSpec) -> LoadedAgent:
        """Return the loaded *agent*; the caller returns it with `give_back`."""
        key = agent.model_dump_json()
        if key not in self._agent_cache:
            self._agent_cache[key] = LoadedAgent(key, agent, self._journal, self._models)
        self._users[key] = self._users.get(key, 0) + 1
        self._unused.pop(key, None)
        return self._agent_cache[key]

    async def give_back(self, loaded_agent: LoadedAgent) -> None:
        """Record that a session has ended its use of *loaded_agent*."""
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
        """Close the connections of all loaded agents."""
        for loaded_agent in self._agent_cache.values():
            await loaded_agent.close()
