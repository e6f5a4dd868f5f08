"""Messages to and from a model, independent of vendors."""

import json
from collections.abc import Iterable, Sequence
from decimal import Decimal
from functools import partial
from operator import is_, not_
from typing import Annotated, Final, Literal, NamedTuple

from pydantic import Field, JsonValue
from pydantic_core import to_json

from cueline.events.fact import Part

Arguments = dict[str, JsonValue]
"""The arguments of a tool call."""


class TextBlock(Part):
    """A block of text in a model's reply."""

    kind: Literal["text"] = "text"
    text: str


class ThinkingBlock(Part):
    """The model's thoughts, sent back unchanged to the provider that made them."""

    kind: Literal["thinking"] = "thinking"
    text: str
    signature: str = ""
    """The provider's signature of the thoughts."""
    provider: str = Field(default="", exclude_if=not_)
    """The provider whose signature it is."""


class OpaqueBlock(Part):
    """Content that only its provider reads, sent back unchanged."""

    kind: Literal["opaque"] = "opaque"
    provider: str
    model: str = Field(default="", exclude_if=not_)
    """The only model that reads the content, as agents name it; empty: all of the provider."""
    data: dict[str, JsonValue]


class ImageBlock(Part):
    """An image; the log keeps its data in a blob."""

    kind: Literal["image"] = "image"
    media_type: str
    """`image/png`, `image/jpeg`, `image/gif` or `image/webp`."""
    data: str
    """The content in base64."""
    name: str = Field(default="", exclude_if=not_)
    """The name of the image's file; empty: unknown."""


class FileBlock(Part):
    """A document; the log keeps its data in a blob."""

    kind: Literal["file"] = "file"
    media_type: str
    """The media type, such as `application/pdf` or `text/plain`."""
    name: str
    data: str
    """The content in base64."""


Attachment = Annotated[ImageBlock | FileBlock, Field(discriminator="kind")]
"""An image or file of a message or result."""

IMAGE_TOKENS: Final = 8_000
"""The most tokens that a vendor counts for one image."""
_KB = 1024
_IMAGE = b'"kind":"image"'


def attachment_text(attachment: Attachment) -> str:
    """Return the description of *attachment* for people, as `[image/png 12 KB photo.png]`."""
    size = len(attachment.data) * 3 // 4 - attachment.data[-2:].count("=")
    told = f"{-(-size // _KB):,} KB" if size < _KB * _KB else f"{size / _KB / _KB:.1f} MB"
    return f"[{f'{attachment.media_type} {told} {attachment.name}'.strip()}]"


def message_text(text: str, attachments: Sequence[Attachment]) -> str:
    """Return a message for people: *text*, and a line for each attachment."""
    return "\n".join([*([text] if text else []), *map(attachment_text, attachments)])


def prompt_size(messages: Iterable[bytes]) -> int:
    """Return the size of encoded *messages* in bytes, which is at least their number of tokens.

    The data of an image counts as `IMAGE_TOKENS`.
    """
    return sum(_size(message) if _IMAGE in message else len(message) for message in messages)


def _size(message: bytes) -> int:
    attachments = json.loads(message).get("attachments", ())
    images = [each for each in attachments if each["kind"] == "image"]
    return len(message) + sum(IMAGE_TOKENS - len(each["data"]) for each in images)


Block = Annotated[TextBlock | ThinkingBlock | OpaqueBlock, Field(discriminator="kind")]


class ToolCall(Part):
    """A tool call that the model requests."""

    id: str
    """The provider's id of the call; cueline's id of a call is its effect, `<turn>.<index>`."""
    name: str
    arguments: dict[str, JsonValue] = {}
    malformed: str | None = None
    """The arguments as text, if they are not a JSON object; else None."""
    problem: str | None = None
    """Why the call cannot run: the text for the model instead of a result."""
    by_name: bool = Field(default=False, exclude_if=not_)
    """Whether the model asked for the call by `call_tool`, which its prompt shows."""
    opaque: OpaqueBlock | None = Field(default=None, exclude_if=partial(is_, None))
    """Content that only the call's provider reads, sent back with the call."""


class Usage(Part):
    """The tokens of a model call."""

    input: int = Field(default=0, ge=0)
    """The input tokens without tokens that were read from or written to the cache."""
    output: int = Field(default=0, ge=0)
    cache_read: int = Field(default=0, ge=0)
    cache_write: int = Field(default=0, ge=0)

    @property
    def sent(self) -> int:
        """All input tokens, including cached tokens."""
        return self.input + self.cache_read + self.cache_write

    @property
    def total(self) -> int:
        """All input and output tokens."""
        return self.sent + self.output

    def __add__(self, other: "Usage") -> "Usage":
        return Usage(
            input=self.input + other.input,
            output=self.output + other.output,
            cache_read=self.cache_read + other.cache_read,
            cache_write=self.cache_write + other.cache_write,
        )


class Cost(Part):
    """The cost of a model call."""

    usd: Decimal
    prices: str
    """The price list and its date."""
    estimated: bool = Field(default=False, exclude_if=not_)  # it is seldom written
    """Whether the usage is unknown, so that the amount is the highest possible cost."""
    saved: Decimal = Field(default=Decimal(0), exclude_if=not_)
    """The amount that the cache saved for the tokens read from it."""


class CacheMiss(NamedTuple):
    """The cost of a changed beginning of the prompt: cached tokens that were sent again.

    The tokens are the cache reads of the last reply before the change, minus those of the
    first reply after it; at most the uncached input of the latter. Each token costs the
    amount that a cached token saved in the earlier reply.
    """

    tokens: int
    usd: Decimal


def cache_miss(reads: int, saved: Decimal, after: Usage) -> CacheMiss:
    """Return the cache miss of a reply with the usage *after*.

    The previous reply read *reads* tokens from the cache, which saved the amount *saved*.
    """
    tokens = max(min(reads - after.cache_read, after.sent - after.cache_read), 0)
    return CacheMiss(tokens, saved * tokens / reads if tokens else Decimal(0))


class Estimate(Part):
    """The estimated cost of a tool call before it runs."""

    usd: Decimal | None = None
    """The amount; None: unknown."""
    problem: str = ""
    """Why the cost is unknown."""


class UserMessage(Part):
    """A message to the model from a person, or from cueline in a person's place."""

    role: Literal["user"] = "user"
    text: str
    attachments: tuple[Attachment, ...] = Field(default=(), exclude_if=not_)


class AssistantMessage(Part):
    """The model's reply."""

    role: Literal["assistant"] = "assistant"
    content: tuple[Block, ...] = ()
    calls: tuple[ToolCall, ...] = ()


class ToolMessage(Part):
    """The result of one tool call."""

    role: Literal["tool"] = "tool"
    call: str
    """The provider's id of the call."""
    text: str
    failed: bool = False
    attachments: tuple[Attachment, ...] = Field(default=(), exclude_if=not_)


Message = Annotated[UserMessage | AssistantMessage | ToolMessage, Field(discriminator="role")]


def canonical_json(value: object) -> bytes:
    """Return *value* in JSON without spaces, with objects in their given order."""
    return to_json(value)


def assistant_json(content: Sequence[Block], calls: Sequence[ToolCall]) -> bytes:
    """Return an `AssistantMessage` in canonical JSON.

    The fields are already valid; to build the message first would validate them again for
    each event of each replay.
    """
    return to_json({"role": "assistant", "content": content, "calls": calls})


def tool_json(
    call: str, text: str, *, failed: bool, attachments: Sequence[Attachment] = ()
) -> bytes:
    """Return a `ToolMessage` in canonical JSON.

    The function does not use msgspec, which is twice as fast: a result of msgspec keeps its
    buffer, 200 bytes for each result in a prompt.
    """
    told = {"role": "tool", "call": call, "text": text, "failed": failed}
    return to_json(told | {"attachments": attachments} if attachments else told)


IMAGE_LIMIT: Final = 5 * 1024 * 1024
"""The size of the largest image in bytes; vendors refuse larger images."""
FORMATS: Final = "PNG, JPEG, GIF or WebP"
_STARTS: Final = {
    b"\x89PNG\r\n\x1a\n": "image/png",
    b"\xff\xd8\xff": "image/jpeg",
    b"GIF87a": "image/gif",
    b"GIF89a": "image/gif",
}
LONGEST_START: Final = 12
"""The number of bytes at the start of an image that show its type."""


def image_type(content: bytes) -> str:
    """Return the media type of *content*; empty if it is no image that models accept."""
    if content[:4] == b"RIFF" and content[8:LONGEST_START] == b"WEBP":
        return "image/webp"
    return next((kind for start, kind in _STARTS.items() if content.startswith(start)), "")
