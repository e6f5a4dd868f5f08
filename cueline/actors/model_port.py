"""The port to whoever thinks."""

from collections.abc import Callable, Sequence
from typing import Protocol, runtime_checkable

from msgspec import Struct, field

from cueline.events.agent import AgentSpec
from cueline.events.message import Block, ToolCall, Usage


class ModelRequest(Struct, frozen=True):
    """One attempt at one model call."""

    session: str
    """The session's stream."""
    effect: str
    """`<turn>.m`."""
    turn: int
    attempt: int
    agent: AgentSpec
    messages: Sequence[bytes]
    """Each an `events.message.Message` in canonical JSON."""


class ModelReply(Struct, frozen=True, kw_only=True):
    """A whole answer; half of one is a `ProviderUnavailableError`."""

    content: tuple[Block, ...] = ()
    calls: tuple[ToolCall, ...] = ()
    stop_reason: str
    """`end_turn`, `tool_use`, `max_tokens` …"""
    usage: Usage = field(default_factory=Usage)
    model: str = ""
    """The model that answered, as the provider names it."""


class Model(Protocol):
    """A vendor's model."""

    async def reply(self, request: ModelRequest) -> ModelReply:
        """Return the model's whole answer. It never tries again by itself.

        Raises:
            ProviderUnavailableError: wait, try again.
            ProviderRefusedError: do not try this request again.
        """
        ...

    async def close(self) -> None:
        """Let go of connections."""
        ...


@runtime_checkable
class TokenCounter(Protocol):
    """What a model may be besides: one whose vendor counts a prompt before it is asked."""

    async def count(self, request: ModelRequest) -> int | None:
        """Return the tokens of what `reply` would send, by the vendor's own count.

        None where the vendor would not count all of it. It answers nothing and
        costs nothing, takes seconds at most, and is not tried again.

        Raises:
            ProviderUnavailableError: no count came, or not in time.
            ProviderRefusedError: the vendor does not count this request.
        """
        ...


ModelFactory = Callable[[AgentSpec], Model]
"""Makes the model of an agent; raises `ConfigError` for what it does not know."""
