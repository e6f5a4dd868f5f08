"""The facts of threads of another framework: streams `checkpoint-<tenant>/…`.

A checkpoint and the writes after it are a stream. The checkpoints of a namespace are listed
in another, whose last event names the newest: a read costs what its checkpoint holds,
however long the thread is. The stream of the outermost namespace also lists the first
checkpoint of each other one. Content is what that framework's serializer gives, as
`<format>:<base64>`.
"""

from typing import Final, Literal

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


class CheckpointListed(Fact):
    """A stream of a checkpoint was begun, or its checkpoint stored."""

    type: Literal["CheckpointListed"] = "CheckpointListed"
    thread: str
    namespace: str = ""
    checkpoint: str
    newest: str
    """The newest checkpoint in the namespace of this stream; empty: none was stored."""


class CheckpointDeleted(Fact):
    """A checkpoint and its writes were deleted; in its stream, the append empties them."""

    type: Literal["CheckpointDeleted"] = "CheckpointDeleted"
    thread: str
    namespace: str = ""
    checkpoint: str
    newest: str
    """As in `CheckpointListed`."""


class ThreadDeleted(Fact):
    """All of a thread was deleted; the same append empties all its streams before this."""

    type: Literal["ThreadDeleted"] = "ThreadDeleted"
    thread: str


DELETIONS: Final = frozenset({"CheckpointDeleted", "ThreadDeleted"})
"""The events whose append empties those before them."""

CheckpointEvent = (
    CheckpointStored | WriteStored | CheckpointListed | CheckpointDeleted | ThreadDeleted
)
