"""Log lines about sessions, by the logger `cueline`: quiet until somebody sets its level.

A line has names, codes and numbers, never what people, models or tools said.
"""

import logging
from collections.abc import Sequence
from typing import Final

from cueline.errors import CuelineError
from cueline.events.session import SessionEvent
from cueline.events.stream import shown

LOGGER: Final = logging.getLogger("cueline")
LOGGER.addHandler(logging.NullHandler())
_FAILED: Final = frozenset({"ModelFailed", "ToolFailed", "ToolInDoubt", "SessionFailed"})
_FIELDS: Final = (
    *("effect", "attempt", "tool", "runner", "model", "child"),
    *("approval", "verdict", "kind", "seconds", "epoch"),
)
"""The fields of facts that a line has under the same names."""


def log_facts(
    stream: str, root: str | None, version: int, steps: Sequence[Sequence[SessionEvent]]
) -> None:
    """Log the facts that were recorded for a session, up to *version*.

    *root* is the topmost session of its tree, as users name it; None: unknown.
    """
    facts = [fact for step in steps for fact in step]
    about = {"session": shown(stream), "correlation_id": root or shown(stream)}
    for number, fact in enumerate(facts, start=version - len(facts) + 1):
        given = ((name, getattr(fact, name, None)) for name in _FIELDS)
        said = {name: value for name, value in given if isinstance(value, str | int | float)}
        LOGGER.log(_level_of(fact), fact.type, extra={**about, "version": number, **said})


def log_trouble(stream: str, error: CuelineError) -> None:
    """Log that a session cannot be run."""
    about = {"session": shown(stream), "error": type(error).__name__}
    LOGGER.error("%s", error, extra=about)


def _level_of(fact: SessionEvent) -> int:
    if fact.type in _FAILED:
        return logging.WARNING
    calm = fact.type.startswith(("Session", "Approval"))
    return logging.INFO if calm else logging.DEBUG
