"""The replies of an earlier session, recorded in the agent of the session that runs it again."""

from pydantic import JsonValue

from cueline.events.message import Block, ToolCall
from cueline.events.part import Part

PROVIDER = "replay"
"""The provider of agents that hold a recording."""


class RecordedReply(Part):
    """One reply of the model."""

    content: tuple[Block, ...] = ()
    calls: tuple[ToolCall, ...] = ()
    stop_reason: str
    model: str = ""
    """The model that gave it."""


class Recording(Part):
    """The replies of a session, in order; the parameter `recording` of its agent."""

    session: str
    """The stream of the earlier session."""
    version: int
    """Its last version that was read."""
    replies: tuple[RecordedReply, ...] = ()

    def as_parameters(self) -> dict[str, JsonValue]:
        """Return the agent's parameters with this recording."""
        return {"recording": self.model_dump(mode="json")}
