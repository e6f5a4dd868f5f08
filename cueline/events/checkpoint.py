"""The facts of threads of another framework: streams `checkpoint-<tenant>/…`.

A checkpoint and the writes after it are a stream. Another stream lists the checkpoints of
a namespace, and its last event names the newest: the cost of a read does not depend on
the length of the thread. The stream of the outermost namespace also lists the first
checkpoint of each other namespace. Content is the output of the other framework's serializer,
as `<format>:<base64>`.
"""

from typing import Final, Literal

from pydantic import Field

from cueline.events.fact import Fact


class CheckpointStored(Fact):
    """A checkpoint of a thread was stored; it replaces a checkpoint with the same id."""

    type: Literal["CheckpointStored"] = "CheckpointStored"
    thread: str
    namespace: str = ""
    """The namespace of a graph inside the thread's graph; empty for the outermost."""
    checkpoint: str
    """The id of the checkpoint; ids sort by age."""
    parent: str = ""
    """The id of the previous checkpoint; empty for the first checkpoint."""
    content: str
    """The checkpoint without its values."""
    metadata: str
    values: dict[str, str] = Field(default_factory=dict)
    """The values by channel; each is a text, so an unchanged long value is stored once."""


class WriteStored(Fact):
    """The writes of one task after a checkpoint was stored."""

    type: Literal["WriteStored"] = "WriteStored"
    thread: str
    namespace: str = ""
    checkpoint: str
    task: str
    path: str = ""
    """The place of the task in its graph."""
    index: int
    """The place among the task's writes; a write at a place below 0 replaces the earlier write."""
    channel: str
    content: str


class CheckpointListed(Fact):
    """The stream of a checkpoint was created, or the checkpoint was stored."""

    type: Literal["CheckpointListed"] = "CheckpointListed"
    thread: str
    namespace: str = ""
    checkpoint: str
    newest: str
    """The newest checkpoint in the namespace of this stream; empty: none was stored."""


class CheckpointDeleted(Fact):
    """A checkpoint and its writes were deleted; the same append redacts them in their stream."""

    type: Literal["CheckpointDeleted"] = "CheckpointDeleted"
    thread: str
    namespace: str = ""
    checkpoint: str
    newest: str
    """The newest checkpoint in the namespace; see `CheckpointListed`."""


class ThreadDeleted(Fact):
    """A thread was deleted; the same append redacts the earlier events of the thread's streams."""

    type: Literal["ThreadDeleted"] = "ThreadDeleted"
    thread: str


DELETIONS: Final = frozenset({"CheckpointDeleted", "ThreadDeleted"})
"""The types of the events whose append redacts earlier events."""

CheckpointEvent = (
    CheckpointStored | WriteStored | CheckpointListed | CheckpointDeleted | ThreadDeleted
)
