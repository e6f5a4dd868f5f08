"""The status of a session, and the answers to a call in doubt; a list loads nothing more."""

from enum import StrEnum
from typing import Final, Literal

Resolution = Literal["happened", "run_again", "do_not_run"]
"""A person's resolution of a call in doubt."""


class Status(StrEnum):
    """The status of the work; presence shows whether a process drives the session."""

    CREATED = "created"
    RUNNING = "running"
    IDLE = "idle"
    WAITING = "waiting"
    STOPPING = "stopping"
    COMPLETED = "completed"
    FAILED = "failed"
    STOPPED = "stopped"


TERMINAL: Final = frozenset({Status.COMPLETED, Status.FAILED, Status.STOPPED})
DRIVEN: Final = frozenset({Status.RUNNING, Status.STOPPING})
"""The statuses in which a session needs a host."""


def is_pause(kind: str, *, exhausted: bool) -> bool:
    """Whether only a person can continue a session that waits for *kind*."""
    return kind == "operator" or exhausted
