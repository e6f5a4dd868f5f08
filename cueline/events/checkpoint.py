"""The facts of a thread of another framework: stream `checkpoint-<tenant>/<thread>`.

Content is what that framework's serializer gives, as `<format>:<base64>`.
"""

from typing import Literal

from pydantic import Field

from cueline.events.fact import Fact


class CheckpointStored(Fact):
    """The state of a thread was stored; one with the same id is replaced."""

    type: Literal["CheckpointStored"] = "CheckpointStored"
    thread: str
    namespace: str = ""
    """Of the graph inside the thread's graph; empty for the outermost."""
    checkpoint: str
    """Its id; they sort by age."""
    parent: str = ""
    """The checkpoint that it follows; empty for the first."""
    content: str
    """The checkpoint without its values."""
    metadata: str
    values: dict[str, str] = Field(default_factory=dict)
    """By channel. Each is an own text, so a long one that did not change is stored once."""


class WriteStored(Fact):
    """What one task wrote after a checkpoint was stored."""

    type: Literal["WriteStored"] = "WriteStored"
    thread: str
    namespace: str = ""
    checkpoint: str
    task: str
    path: str = ""
    """The place of the task in its graph."""
    index: int
    """The place among the task's writes; one below 0 replaces the earlier one."""
    channel: str
    content: str


class ThreadDeleted(Fact):
    """All of a thread was deleted; the same append empties the events before."""

    type: Literal["ThreadDeleted"] = "ThreadDeleted"
    thread: str


CheckpointEvent = CheckpointStored | WriteStored | ThreadDeleted
