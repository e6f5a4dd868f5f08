"""What a compaction sends, and where it cuts: pure functions of the messages.

The model that answers next gets its own prompt up to the cut, so a cache may have it, and
a request for a summary. A call stays with its result.
"""

from itertools import accumulate
from typing import Final

from msgspec import Struct

from cueline.deciders.prompt import TOOL, Prompt, user_message
from cueline.deciders.prompt_limit import fitted
from cueline.events.session import Cut

KEPT: Final = 0.25
"""The newest messages of up to this share of all bytes stay as they are."""
KEPT_OF_TOO_LONG: Final = 0.5
"""The same after a prompt that was too long: the older half has to fit by itself."""
ASK: Final = """Summarise the conversation so far. Your summary replaces it: later requests show \
only the summary and the newest messages. Write for yourself, as the one who goes on with the work.
Keep, word for word where it matters: the user's goals, instructions and limits; decisions and \
their reasons; what was done with which result; names, paths, numbers and errors that are needed \
again; what is open and what comes next. Leave out what is of no more use.
Reply with the summary alone. Call no tool."""


class Compaction(Struct, frozen=True):
    """The request for a summary."""

    cut: Cut
    messages: list[bytes]


def compaction_of(
    current: Prompt, *, too_long: bool, window: int | None = None
) -> Compaction | None:
    """Return the request for a summary of old messages; None if there are none.

    *too_long* says that the prompt did not fit into the model's context *window*, in tokens.
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
