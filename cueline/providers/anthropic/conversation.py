"""Converts neutral messages into Anthropic's form.

The API refuses some of what a model may say: a repeated id, characters that no id or
name may have, an answer that ends in a thought. One such message would fail every later
request of the session. So they are changed here, and the log keeps the original. Each
message gives the same blocks whatever follows it, so a prompt's prefix stays the same.
"""

import json
import re
from collections import defaultdict, deque
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final

from cueline.events.message import (
    AssistantMessage,
    Block,
    OpaqueBlock,
    TextBlock,
    ThinkingBlock,
    ToolCall,
    ToolMessage,
    UserMessage,
)

PROVIDER: Final = "anthropic"
Json = dict[str, Any]

CALL: Final = "tool_use"
PLACE: Final = OpaqueBlock(provider=PROVIDER, data={"type": CALL})
"""Marks the place of a call in an answer: thoughts keep their places among calls."""

THOUGHTS: Final = frozenset({"thinking", "redacted_thinking"})
# The API refuses a text of blanks only, but not an empty result.
BLANK: Final = "(empty)"
UNKNOWN_LETTER: Final = re.compile(r"[^a-zA-Z0-9_-]")
LONGEST_NAME: Final = 64


class CallIds:
    """The ids of calls as they are sent, all different."""

    def __init__(self) -> None:
        self._taken: set[str] = set()
        self._unanswered: defaultdict[str, deque[str]] = defaultdict(deque)

    def sent_for(self, call_id: str) -> str:
        """Return the id to send for a call that came with *call_id*."""
        sent = UNKNOWN_LETTER.sub("_", call_id) or "call"
        while sent in self._taken:
            sent = f"{sent}-{len(self._taken)}"
        self._taken.add(sent)
        self._unanswered[call_id].append(sent)
        return sent

    def answered(self, call_id: str) -> str:
        """Return the id to send with the result of such a call; of several, in order."""
        return self._unanswered[call_id].popleft()


def conversation(messages: Iterable[bytes]) -> list[Json]:
    """Return the messages in Anthropic's form, with alternating roles."""
    turns: list[Json] = []
    for role, blocks in messages_of(messages):
        if turns and turns[-1]["role"] == role:
            turns[-1]["content"] += blocks
        elif blocks:
            turns.append({"role": role, "content": blocks})
    for turn in turns:
        if turn["role"] == "user":
            # The API wants results first; a stable sort keeps the order within each kind.
            turn["content"].sort(key=lambda block: block["type"] != "tool_result")
    return turns


def messages_of(messages: Iterable[bytes]) -> Iterator[tuple[str, list[Json]]]:
    """Yield role and blocks of each message."""
    ids = CallIds()
    for encoded in messages:
        message = json.loads(encoded)
        match message["role"]:
            case "assistant":
                yield "assistant", answer_blocks(AssistantMessage.model_validate(message), ids)
            case "tool":
                yield "user", [result_block(ToolMessage.model_validate(message), ids)]
            case _:
                text = UserMessage.model_validate(message).text
                yield "user", [{"type": "text", "text": text if text.strip() else BLANK}]


def answer_blocks(message: AssistantMessage, ids: CallIds) -> list[Json]:
    """Return the blocks of an answer; calls without a place are at the end."""
    calls = deque(call_block(call, ids) for call in message.calls)
    blocks = [
        calls.popleft() if block["type"] == CALL else block
        for block in content_blocks(message.content)
    ]
    blocks += calls
    if blocks and blocks[-1]["type"] in THOUGHTS:
        blocks.append({"type": "text", "text": BLANK})
    return blocks


def content_blocks(content: Sequence[Block]) -> Iterator[Json]:
    """Yield the blocks that Anthropic accepts: not another provider's thoughts."""
    for block in content:
        match block:
            case TextBlock(text=text) if text.strip():
                yield {"type": "text", "text": text}
            case ThinkingBlock(text=text, signature=signature) if signature:
                yield {"type": "thinking", "thinking": text, "signature": signature}
            case OpaqueBlock(provider="anthropic", data=data):
                yield dict(data)
            case _:
                pass


def call_block(call: ToolCall, ids: CallIds) -> Json:
    """Return the block of a tool call."""
    name = UNKNOWN_LETTER.sub("_", call.name)[:LONGEST_NAME] or "_"
    return {"type": CALL, "id": ids.sent_for(call.id), "name": name, "input": call.arguments}


def result_block(message: ToolMessage, ids: CallIds) -> Json:
    """Return the block of a call's result."""
    return {
        "type": "tool_result",
        "tool_use_id": ids.answered(message.call),
        "content": message.text,
        "is_error": message.failed,
    }
