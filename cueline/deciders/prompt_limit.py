"""What a model is sent of a long result of a tool: as much as its context window allows.

The log and the prompt's digest have all of it. With the same window, a message is cut in the
same way in each request, so the beginning of the prompt stays the same.
"""

import json
from collections.abc import Sequence
from typing import Final

from cueline.deciders.prompt import TOOL
from cueline.events.message import canonical_json

UNKNOWN: Final = 50_000
"""The most bytes of one result for a model whose window is unknown."""
_BYTES_PER_TOKEN: Final = 3
_SHARE: Final = 4
"""One result takes at most this part of the window, as 1/4."""
_TAIL: Final = 6
"""The end takes this part of what is sent, as 1/6."""
_IMAGE: Final = b'"kind":"image"'


def limit_of(window: int | None) -> int:
    """Return the most bytes of one result that a model with a *window* of so many tokens gets."""
    return UNKNOWN if window is None else window * _BYTES_PER_TOKEN // _SHARE


def fitted(messages: Sequence[bytes], window: int | None) -> Sequence[bytes]:
    """Return *messages* with each result cut to the limit of *window*."""
    most = limit_of(window)
    if max(map(len, messages), default=0) <= most:
        return messages
    return [_cut(each, most) if _may_be_long(each, most) else each for each in messages]


def _may_be_long(message: bytes, most: int) -> bool:
    return len(message) > most and message.startswith(TOOL) and _IMAGE not in message


def _cut(message: bytes, most: int) -> bytes:
    said = json.loads(message)
    text = said["text"].encode()
    if len(text) <= most:
        return message
    tail = most // _TAIL
    first, last = text[: most - tail], text[len(text) - tail :]
    gap = f"[… {len(text) - most:,} bytes are left out here, for which this model has no room …]"
    said["text"] = f"{first.decode(errors='ignore')}\n{gap}\n{last.decode(errors='ignore')}"
    return canonical_json(said)
