"""A provider whose models have a window of 8,192 tokens, and refuse what does not fit into it."""

from cueline.errors import ProviderRefusedError
from cueline.providers.provider import Capabilities, Provider
from cueline.providers.scripted.model import ScriptedModel, record_script

WINDOW = 8_192
BYTES_A_TOKEN = 3


class SmallModel(ScriptedModel):
    """Answers by a script, but to no request that leaves no room for the longest reply."""

    async def reply(self, request, deltas=None):
        asked = sum(map(len, request.messages)) // BYTES_A_TOKEN
        if asked + request.agent.limits.max_output_tokens > WINDOW:
            raise ProviderRefusedError("context_too_long", f"{asked} tokens and the reply")
        return await super().reply(request)


PROVIDER = Provider(
    name="small",
    capabilities=Capabilities(needs_key=False),
    make=lambda _account, pause: SmallModel(pause),
    is_free=True,
    record_file=record_script,
)
