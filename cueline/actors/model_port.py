"""The port to models."""

from collections.abc import Callable, Sequence
from typing import Literal, Protocol, runtime_checkable

from msgspec import Struct, field

from cueline.events.agent import AgentSpec
from cueline.events.message import Block, ToolCall, Usage


class ModelRequest(Struct, frozen=True):
    """One attempt at a model call."""

    session: str
    """The session's stream."""
    effect: str
    """`<turn>.m`."""
    turn: int
    attempt: int
    agent: AgentSpec
    messages: Sequence[bytes]
    """The prompt: each element is an `events.message.Message` in canonical JSON."""


class ModelReply(Struct, frozen=True, kw_only=True):
    """A complete reply; an incomplete reply is a `ProviderUnavailableError`."""

    content: tuple[Block, ...] = ()
    calls: tuple[ToolCall, ...] = ()
    stop_reason: str
    """`end_turn`, `tool_use`, `max_tokens` …"""
    usage: Usage = field(default_factory=Usage)
    model: str = ""
    """The model that answered, by the provider's name for it."""
    lacking: tuple[str, ...] = ()
    """The capabilities that the model lacks and the request needed, for example `tools`."""


class Delta(Struct, frozen=True):
    """A piece of a reply that is still arriving; never recorded."""

    kind: Literal["text", "thinking"]
    text: str


DeltaSink = Callable[[Delta], None]
"""Takes each piece of a reply at once; it may drop pieces, and never raises."""


def drop_delta(_delta: Delta) -> None:
    """Drop a piece of a reply that nobody watches."""


class Model(Protocol):
    """A vendor's model."""

    async def reply(self, request: ModelRequest, deltas: DeltaSink = drop_delta) -> ModelReply:
        """Return the model's complete reply; the adapter does not retry.

        Text and thoughts go to *deltas* while they arrive.

        Raises:
            ProviderUnavailableError: wait and try again.
            ProviderRefusedError: do not repeat this request.
        """

    async def close(self) -> None:
        """Close connections."""


@runtime_checkable
class TokenCounter(Protocol):
    """A model whose vendor can count the tokens of a prompt before the call."""

    async def count(self, request: ModelRequest) -> int | None:
        """Return the vendor's token count of the request of `reply`.

        Returns None if the vendor cannot count all of it. Counting costs nothing,
        takes seconds at most, and is not retried.

        Raises:
            ProviderUnavailableError: there was no answer in time.
            ProviderRefusedError: the vendor does not count this request.
        """


ModelFactory = Callable[[AgentSpec], Model]
"""Makes the model of an agent; raises `ConfigError` for an unknown provider or model."""
