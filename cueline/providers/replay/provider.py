"""The provider of models that answer from a recording."""

import json
from collections.abc import Sequence
from typing import Any, Final

from pydantic import JsonValue, ValidationError

from cueline.actors.model_port import Delta, DeltaSink, ModelReply, ModelRequest, drop_delta
from cueline.errors import ConfigError, ProviderRefusedError
from cueline.events.agent import AgentSpec
from cueline.events.codes import NOT_RECORDED
from cueline.events.fact import Part
from cueline.events.message import Block, TextBlock, ThinkingBlock, ToolCall
from cueline.providers.account import Account
from cueline.providers.provider import Capabilities, Pause, Provider

NAME: Final = "replay"
"""The provider of agents with a recording."""


class RecordedReply(Part):
    """One reply of the model."""

    content: tuple[Block, ...] = ()
    calls: tuple[ToolCall, ...] = ()
    stop_reason: str
    model: str = ""
    """The model of the reply."""


class Recording(Part):
    """The recorded replies of an earlier session, in order.

    A rerun gives them to its agent as the parameter `recording`.
    """

    session: str
    """The stream of the earlier session."""
    version: int
    """The last version of that stream that was read."""
    replies: tuple[RecordedReply, ...] = ()

    def as_parameters(self) -> dict[str, JsonValue]:
        """Return the agent's parameters with this recording."""
        return {"recording": self.model_dump(mode="json")}


class ReplayModel:
    """Answers with the recorded reply of the request's turn; it keeps no state."""

    async def reply(self, request: ModelRequest, deltas: DeltaSink = drop_delta) -> ModelReply:
        """Return the recorded reply of the request's turn; it uses no tokens.

        Raises:
            ProviderRefusedError: the recording has ended, or a call has no recorded result.
        """
        if (call := unanswered(request.messages)) is not None:
            raise ProviderRefusedError("invalid_request", call)
        replies: Any = request.agent.parameters["recording"]
        replies = replies["replies"]
        if request.turn > len(replies):
            why = f"the recording ends after turn {len(replies)}"
            raise ProviderRefusedError("invalid_request", why)
        reply = RecordedReply.model_validate(replies[request.turn - 1])
        for block in reply.content:
            if isinstance(block, TextBlock | ThinkingBlock):
                deltas(Delta(block.kind, block.text))
        return ModelReply(
            content=reply.content,
            calls=reply.calls,
            stop_reason=reply.stop_reason,
            model=reply.model,
        )

    async def close(self) -> None:
        """See `Model.close`."""


def unanswered(messages: Sequence[bytes]) -> str | None:
    """Return the error if a call of the last turn has no recorded result; else None.

    The recorded model has never seen such a result, so its next reply would mean nothing.
    """
    for message in reversed(messages):
        read = json.loads(message)
        if read["role"] == "assistant":
            return None
        if read.get("failed") and read["text"].startswith(f"{NOT_RECORDED}: "):
            text: str = read["text"].removeprefix(f"{NOT_RECORDED}: ").partition("\n")[0]
            return text
    return None


def check(agent: AgentSpec) -> None:
    """Check that *agent* has a recording.

    Raises:
        ConfigError: start it with `cueline rerun`.
    """
    try:
        Recording.model_validate(agent.parameters.get("recording"))
    except ValidationError:
        why = f"it has no recording; start it with `cueline rerun {agent.model} --agent FILE`"
        raise ConfigError("provider replay", why) from None


def make(_account: Account, _pause: Pause) -> ReplayModel:
    """Return the model of every recording."""
    return ReplayModel()


PROVIDER: Final = Provider(
    name=NAME,
    capabilities=Capabilities(images=True, files=True, thinking=True, needs_key=False),
    make=make,
    check=check,
    is_free=True,
)
