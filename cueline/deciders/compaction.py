"""Cuts long results and long prompts for a model: pure functions of the messages.

The log and the prompt's digest have the whole text. With the same window, a message is cut in the
same way in each request, so the beginning of the prompt stays the same.

The model that answers next also writes the summary. The request for a summary repeats the prompt
up to the cut, which a cache may have. A call stays with its result.
"""

import json
from collections.abc import Sequence
from itertools import accumulate
from typing import Final

from msgspec import Struct

from cueline.deciders.prompt import TOOL, Prompt, user_message
from cueline.events.message import canonical_json
from cueline.events.session import Cut

UNKNOWN: Final = 50_000
"""The most bytes of one result for a model whose window is unknown."""
_BYTES_PER_TOKEN: Final = 3
_SHARE: Final = 4
"""The divisor of the window: one result takes at most 1/4 of the window."""
_TAIL: Final = 6
"""The divisor of the limit: the end of a cut result takes 1/6 of the limit."""
_IMAGE: Final = b'"kind":"image"'


def limit_of(window: int | None) -> int:
    """Return the most bytes of one result for a model with a context *window*, in tokens."""
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


KEPT: Final = 0.25
"""The share of the prompt's bytes, at its end, that is not summarised."""
KEPT_OF_TOO_LONG: Final = 0.5
"""The share that is not summarised after a prompt was too long: the older half has to fit."""
ASK: Final = """Summarise the conversation so far. Your summary replaces it: later requests show \
only the summary and the newest messages. Write for yourself, as the one who goes on with the work.
Keep, word for word where it matters: the user's goals, instructions and limits; decisions and \
their reasons; what was done with which result; names, paths, numbers and errors that are needed \
again; what is open and what comes next. Leave out what is of no more use.
Reply with the summary alone. Call no tool."""


class Compaction(Struct, frozen=True):
    """The request for a summary of old messages, and the place of the cut."""

    cut: Cut
    messages: list[bytes]


def compaction_of(
    current: Prompt, *, too_long: bool, window: int | None = None
) -> Compaction | None:
    """Return the request for a summary of old messages; None if no message can be summarised.

    *too_long*: the prompt did not fit into the model's context *window*, in tokens.
    """
    messages = current.messages
    share = KEPT_OF_TOO_LONG if too_long else KEPT
    sizes = list(map(len, fitted(messages, window)))
    kept = sum(sizes) * share
    newest = sum(size <= kept for size in accumulate(reversed(sizes)))
    first = 2 if current.summarised else 1  # a summary alone is not summarised again
    places = [n for n in range(first, len(messages)) if not messages[n].startswith(TOOL)]
    if not places:
        return None
    wanted = len(messages) - newest
    at = next((n for n in places if n >= wanted), places[-1])
    before = len(current.transcript) - len(messages)
    cut = Cut(messages=at + before, of=len(current.transcript))
    return Compaction(cut, [*messages[:at], user_message(ASK)])
