"""A run: a session that was started from a blueprint."""

from functools import partial
from operator import eq, not_
from typing import Final

from pydantic import Field

from cueline.events.number import Seconds
from cueline.events.part import Part

QUEUE_SECONDS: Final = 300.0
"""The default of the time that a run waits for a runner."""
NO_RUNNER: Final = "No matching runner available within timeout"
DISCONNECTED: Final = "Runner disconnected during execution"


class Run(Part):
    """What makes a session a run: a runner has to claim it before it begins."""

    blueprint: str
    """The name of its agent, as a runner offers it."""
    retry_of: str = Field(default="", exclude_if=not_)
    """The run that this is another try of."""
    queue_seconds: Seconds = Field(
        default=QUEUE_SECONDS, ge=0, exclude_if=partial(eq, QUEUE_SECONDS)
    )
    """How long it waits for a runner."""
