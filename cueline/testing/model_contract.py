"""The contract that every provider of models has to pass.

Subclass `ModelContract`, name the provider, and give a `server` fixture and the answers of
`RECORDED` in the vendor's own form. Run pytest with pytest-asyncio and
`asyncio_mode = "auto"`. A test for a capability that the provider does not have is skipped.
"""

from typing import Final

from cueline.testing.model_faults import FaultContract
from cueline.testing.model_replies import ReplyContract
from cueline.testing.model_tool_calls import ToolContract

RECORDED: Final = {
    "text": "the text `It rains, as it often does.`, a piece of it in the first half of the bytes",
    "thinking": "the thoughts `Paris, then.`, and the text `Let me see.`",
    "cached": "any reply with 9 new tokens, 70 from the cache, and 33 in the answer",
    "limit": "a text that the limit of tokens cut off",
    "cut": "a call of `get_weather` that the limit of tokens cut off in its arguments",
    "too long": "an error: the prompt does not fit the model",
    "refusal": "the model declines to answer",
    "filtered": "the vendor's filter stops the answer",
    "error in stream": "an error after the first piece: the vendor is busy or broken",
}
"""The recorded answers by name, and the content that each needs."""


class ModelContract(ReplyContract, ToolContract, FaultContract):
    """Every rule of `cueline.actors.model_port`, as a test."""
