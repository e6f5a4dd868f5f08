"""What a model says and is told, in no vendor's dialect."""

from collections.abc import Sequence
from decimal import Decimal
from operator import not_
from typing import Annotated, Literal

from pydantic import Field, JsonValue
from pydantic_core import to_json

from cueline.events.agent import Part

Arguments = dict[str, JsonValue]
"""What a tool is called with."""


class TextBlock(Part):
    """Words for the reader."""

    kind: Literal["text"] = "text"
    text: str


class ThinkingBlock(Part):
    """The model's thoughts, sent back as they came."""

    kind: Literal["thinking"] = "thinking"
    text: str
    signature: str = ""
    """The provider's proof that the thoughts are its own."""


class OpaqueBlock(Part):
    """Something that only its provider reads, sent back as it came."""

    kind: Literal["opaque"] = "opaque"
    provider: str
    data: dict[str, JsonValue]


Block = Annotated[TextBlock | ThinkingBlock | OpaqueBlock, Field(discriminator="kind")]


class ToolCall(Part):
    """What the model asks a tool to do."""

    id: str
    """The provider's own id of the call; ours is its effect, `<turn>.<index>`."""
    name: str
    arguments: dict[str, JsonValue] = {}
    malformed: str | None = None
    """The arguments as they came, when they were no JSON object."""
    problem: str | None = None
    """Why it cannot be run: what the model is told instead of a result."""


class Usage(Part):
    """What a model call used, in tokens."""

    input: int = Field(default=0, ge=0)
    """Without what was read from or written to the cache."""
    output: int = Field(default=0, ge=0)
    cache_read: int = Field(default=0, ge=0)
    cache_write: int = Field(default=0, ge=0)

    @property
    def sent(self) -> int:
        """What was sent, however much of it the cache had."""
        return self.input + self.cache_read + self.cache_write

    @property
    def total(self) -> int:
        """What was sent and answered."""
        return self.sent + self.output

    def __add__(self, other: "Usage") -> "Usage":
        return Usage(
            input=self.input + other.input,
            output=self.output + other.output,
            cache_read=self.cache_read + other.cache_read,
            cache_write=self.cache_write + other.cache_write,
        )


class Cost(Part):
    """What a model call cost."""

    usd: Decimal
    prices: str
    """Which price list, and of when."""
    estimated: bool = Field(default=False, exclude_if=not_)  # it is seldom written
    """Nobody knows what was used: this is the most that it may have cost."""


class Estimate(Part):
    """What a tool call will cost, as far as its tool can tell before it runs."""

    usd: Decimal | None = None
    """None: nobody knows."""
    problem: str = ""
    """Why nobody knows."""


class UserMessage(Part):
    """What a person, or cueline for them, tells the model."""

    role: Literal["user"] = "user"
    text: str


class AssistantMessage(Part):
    """What the model said."""

    role: Literal["assistant"] = "assistant"
    content: tuple[Block, ...] = ()
    calls: tuple[ToolCall, ...] = ()


class ToolMessage(Part):
    """What became of one tool call."""

    role: Literal["tool"] = "tool"
    call: str
    """The provider's id of the call."""
    text: str
    failed: bool = False


Message = Annotated[UserMessage | AssistantMessage | ToolMessage, Field(discriminator="role")]


def canonical_json(value: object) -> bytes:
    """Return *value* in JSON: without spaces, objects in the order in which they came."""
    return to_json(value)


def assistant_json(content: Sequence[Block], calls: Sequence[ToolCall]) -> bytes:
    """Return an `AssistantMessage` in canonical JSON.

    Its parts were checked when they were made; to make a message of them only
    to write it would check them again, at each event of each replay.
    """
    return to_json({"role": "assistant", "content": content, "calls": calls})


def tool_json(call: str, text: str, *, failed: bool) -> bytes:
    """Return a `ToolMessage` in canonical JSON, likewise.

    Not with msgspec, which takes half as long: what it returns keeps the room
    that it wrote in, 200 bytes for each result of a prompt.
    """
    return to_json({"role": "tool", "call": call, "text": text, "failed": failed})
