"""Asks a model in the way in which it has tools: its own, or as text."""

import re
from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import Final

from msgspec.structs import replace

from cueline.actors.model_port import DeltaSink, ModelReply, ModelRequest
from cueline.errors import ProviderRefusedError, ProviderUnavailableError
from cueline.events.agent import AgentSpec
from cueline.providers.patience import TOOL_PROTOCOL
from cueline.providers.prompted_tools import (
    VisibleText,
    prompted_reply,
    prompted_request,
    without_tools,
)

Ask = Callable[[ModelRequest, DeltaSink], Awaitable[ModelReply]]

NO_TOOLS: Final = re.compile(
    "not support (tool|function)|tools? (use )?(is|are) not supported|support tool use"
    "|function calling is not enabled|enable-auto-tool-choice|requires --jinja",
    re.IGNORECASE,
)
"""In the errors of Ollama, gateways, OpenRouter, Gemini, vLLM and llama.cpp, in this order."""


class ToolProtocol:
    """Asks the models of one account, and knows which of them have no tools.

    An agent's parameter `tool_protocol` decides it, and otherwise the server: by `learn`, or
    by the error for a request with tools, which is then sent once more without.
    """

    def __init__(self, ask: Ask) -> None:
        self._ask = ask
        self._without: set[str] = set()

    def learn(self, model: str) -> None:
        """Remember that *model* has no tools."""
        self._without.add(model)

    async def reply(self, request: ModelRequest, deltas: DeltaSink) -> ModelReply:
        """Return the reply; it raises as `Model.reply`."""
        agent = request.agent
        protocol = agent.parameters.get(TOOL_PROTOCOL)
        if not agent.tools or protocol == "native":
            return await self._ask(request, deltas)
        if protocol == "prompt":
            return await self._in_text(request, deltas)
        if agent.model not in self._without:
            try:
                return await self._ask(request, deltas)
            except (ProviderRefusedError, ProviderUnavailableError) as error:
                if not NO_TOOLS.search(error.message):
                    raise
            self.learn(agent.model)
        reply = await self._in_text(request, deltas)
        return replace(reply, lacking=("tools", *reply.lacking))

    async def _in_text(self, request: ModelRequest, deltas: DeltaSink) -> ModelReply:
        visible = VisibleText(deltas)
        reply = await self._ask(prompted_request(request), visible)
        visible.end()
        return prompted_reply(reply, request)


def as_asked(agent: AgentSpec, messages: Iterable[bytes]) -> tuple[AgentSpec, Sequence[bytes]]:
    """Return *agent* and *messages* as they are sent, by the agent's own parameter."""
    if agent.tools and agent.parameters.get(TOOL_PROTOCOL) == "prompt":
        return without_tools(agent, messages)
    return agent, list(messages)
