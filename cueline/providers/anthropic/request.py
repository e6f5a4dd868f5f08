"""Builds Anthropic's requests from neutral messages."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Annotated, Final

from pydantic import Field, TypeAdapter, ValidationError

from cueline.errors import ConfigError
from cueline.events.agent import AgentSpec
from cueline.events.number import Time
from cueline.providers.anthropic.conversation import Json, conversation

TOTAL_SECONDS: Final = 600.0
CHUNK_SECONDS: Final = 60.0
COUNT_SECONDS: Final = 2.0
"""The longest wait for a token count; without one, the bytes are counted."""
SECONDS: Final = {"timeout_seconds": TOTAL_SECONDS, "chunk_timeout_seconds": CHUNK_SECONDS}
"""cueline's own parameters: they limit the wait, and are not sent."""
_TIME: Final = TypeAdapter[float](Annotated[Time, Field(gt=0)])

ELSEWHERE: Final = {
    "max_tokens": "use limits.max_output_tokens",
    "messages": "cueline makes them",
    "model": "use model",
    "stream": "cueline always streams",
    "system": "use instructions",
    "tools": "use tools",
}

COUNTED: Final = frozenset(
    {
        "cache_control",
        "messages",
        "model",
        "output_config",
        "speed",
        "system",
        "thinking",
        "tool_choice",
        "tools",
    }
)
"""The fields of the counting endpoint, which refuses all others."""
WEIGHTLESS: Final = frozenset(
    {
        "inference_geo",
        "max_tokens",
        "metadata",
        "service_tier",
        "stop_sequences",
        "temperature",
        "top_k",
        "top_p",
    }
)
"""Fields that add nothing to the prompt."""

CACHED: Final = {"cache_control": {"type": "ephemeral"}}


@dataclass(frozen=True, slots=True, kw_only=True)
class Patience:
    """How long a reply may take, in seconds."""

    total: float = TOTAL_SECONDS
    chunk: float = CHUNK_SECONDS
    """Between two pieces of the reply."""

    @property
    def of_a_count(self) -> "Patience":
        """How long counting a prompt may take."""
        return Patience(total=min(self.total, COUNT_SECONDS), chunk=min(self.chunk, COUNT_SECONDS))


def check_parameters(agent: AgentSpec) -> None:
    """Check the parameters of *agent* that are not passed on unchanged.

    Raises:
        ConfigError: move or correct the parameter that it names.
    """
    for name, instead in ELSEWHERE.items():
        if name in agent.parameters:
            raise ConfigError(f"parameters.{name}", f"is not set here: {instead}")
    for name in SECONDS:
        value = agent.parameters.get(name, 1)
        try:
            _TIME.validate_python(value)
        except ValidationError:
            raise ConfigError(f"parameters.{name}", f"is {value!r}, not seconds above 0") from None


def patience_of(agent: AgentSpec) -> Patience:
    """Return the time limits of a reply; the parameters were checked."""
    total, chunk = (agent.parameters.get(name, SECONDS[name]) for name in SECONDS)
    return Patience(total=_TIME.validate_python(total), chunk=_TIME.validate_python(chunk))


def request_body(agent: AgentSpec, messages: Iterable[bytes]) -> Json:
    """Return the JSON of a request for the next reply, as a stream."""
    body: Json = {
        "model": agent.model,
        "max_tokens": agent.limits.max_output_tokens,
        "messages": conversation(messages),
        **{name: value for name, value in agent.parameters.items() if name not in SECONDS},
    }
    if agent.tools:
        body["tools"] = [
            {"name": t.name, "description": t.description, "input_schema": t.parameters}
            for t in agent.tools
        ]
    if agent.instructions.strip():
        body["system"] = [{"type": "text", "text": agent.instructions}]
    mark_for_cache(body)
    return body


def count_body(body: Json) -> Json | None:
    """Return the JSON of a request to count the prompt of *body*.

    Returns None if a part of it cannot be counted.
    """
    if not body.keys() <= COUNTED | WEIGHTLESS:
        return None
    return {name: body[name] for name in body.keys() & COUNTED}


def mark_for_cache(body: Json) -> None:
    """Mark how much of the prompt the API should cache for the next request.

    The last message is marked for the next turn. The one of the turn before is marked
    because the API looks back over 20 blocks only, and a turn may have more calls.
    """
    users = [message for message in body["messages"] if message["role"] == "user"]
    prefix = body.get("system") or body.get("tools")
    for blocks in (prefix, *(message["content"] for message in users[-2:])):
        if blocks:
            blocks[-1] |= CACHED
