"""Finds replies without text and calls, and their error code."""

import json
from collections.abc import Sequence

from cueline.events.failure import NO_ANSWER
from cueline.events.message import Block, TextBlock, ToolCall

_ENDS = frozenset({"end_turn", "max_tokens"})
"""The reasons to stop with which a model ends its turn by itself, or by the limit of a reply."""


def silence(
    content: Sequence[Block],
    calls: Sequence[ToolCall],
    stop_reason: str,
    messages: Sequence[bytes],
) -> str | None:
    """Return the error code of a reply to *messages* without text and calls; None for any other.

    After a tool's result, a model may end its turn without any content.
    """
    if calls or stop_reason not in _ENDS:
        return None
    if any(isinstance(block, TextBlock) and block.text.strip() for block in content):
        return None
    if any(not isinstance(block, TextBlock) for block in content):
        return NO_ANSWER
    roles = (json.loads(message)["role"] for message in reversed(messages))
    after_result = next((role for role in roles if role != "user"), "") == "tool"
    return None if after_result or stop_reason != "end_turn" else "malformed_reply"
