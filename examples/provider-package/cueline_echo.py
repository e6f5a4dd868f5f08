"""A provider whose model repeats the last message; it needs no key and no network."""

import json

from cueline.actors.model_port import Delta, DeltaSink, ModelReply, ModelRequest, drop_delta
from cueline.events.message import TextBlock
from cueline.providers.account import Account
from cueline.providers.provider import Capabilities, Pause, Provider


class EchoModel:
    """Repeats the last message; it has no tools."""

    async def reply(self, request: ModelRequest, deltas: DeltaSink = drop_delta) -> ModelReply:
        """Return the last message; watchers get its text first."""
        text = json.loads(request.messages[-1]).get("text", "")
        deltas(Delta("text", text))
        return ModelReply(
            content=(TextBlock(text=text),), stop_reason="end_turn", model=request.agent.model
        )

    async def close(self) -> None:
        """Close nothing."""


def make(_account: Account, _pause: Pause) -> EchoModel:
    """Return the model; import an SDK here, not above, so that `cueline --help` stays quick."""
    return EchoModel()


PROVIDER = Provider(
    name="echo",
    capabilities=Capabilities(tools=False, parallel_tools=False, needs_key=False),
    make=make,
    default_model="parrot",
    looked_up="2026-11-24",
    is_free=True,
)
