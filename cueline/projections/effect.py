"""The read model `effects`: the model calls and tool calls."""

from dataclasses import dataclass
from sqlite3 import Connection
from typing import ClassVar

from cueline.events.status import DRIVEN
from cueline.projections.read_model import Names, ask
from cueline.projections.usage import Spending

# In flight are those of few sessions; a look at all calls ever made would take long.
_STARTED = """
SELECT runner, count(*) FROM sessions JOIN effects USING (stream)
WHERE sessions.status IN (?, ?) AND effects.status = 'started' AND runner != ''
GROUP BY runner
"""


@dataclass(frozen=True, slots=True)
class Effect(Spending):
    """One model call or tool call of a session, with all its attempts."""

    TABLE: ClassVar[str] = "effects"
    KEY: ClassVar[Names] = ("stream", "effect")
    INDEXES: ClassVar[tuple[Names, ...]] = ()

    stream: str
    effect: str
    kind: str
    """`model` or `tool`."""
    tool: str = ""
    arguments: str = ""
    """The beginning of its arguments as JSON, as a person changed them."""
    declared: str = ""
    key: str = ""
    """The idempotency key, the same for every attempt."""
    status: str = "requested"
    """`requested`, `started`, `retry`, `in_doubt`; at last `returned`, `failed`,
    `skipped` or `reconciled`."""
    attempts: int = 0
    lost: int = 0
    """Attempts cut off by a crash."""
    in_doubt: bool = False
    rule: str = ""
    """The rule that allowed its last attempt, or that denied the call."""
    runner: str = ""
    files_json: str = "[]"
    """The paths of the files that it changed."""
    requested_version: int = 0
    started_position: int | None = None
    """The start of its first attempt."""
    ended_position: int | None = None
    ended_version: int | None = None
    seconds: float = 0.0


def started_calls(db: Connection) -> dict[str, int]:
    """Return the number of running calls by runner."""
    return dict(ask(db, Effect.TABLE, _STARTED, sorted(DRIVEN)))
