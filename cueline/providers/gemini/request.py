"""Builds Gemini's requests from neutral messages."""

import re
from collections.abc import Iterable
from typing import Final

from cueline.events.agent import AgentSpec
from cueline.providers.gemini.conversation import PROVIDER, Json, conversation, sent_tools
from cueline.providers.patience import OWN
from cueline.providers.transcript import transcript

TOP: Final = frozenset(
    {
        "cachedContent",
        "generationConfig",
        "labels",
        "safetySettings",
        "serviceTier",
        "store",
        "toolConfig",
    }
)
"""The fields of a request that an agent may set; its other parameters are of `generationConfig`."""
_UNSAFE: Final = re.compile(r"[^\w./-]", re.ASCII)


def model_path(model: str) -> str:
    """Return the path of a model, whose name may begin with `models/` or `tunedModels/`."""
    name = model if "/" in model else f"models/{model}"
    return f"/v1beta/{_UNSAFE.sub(lambda part: quoted(part[0]), name)}"


def quoted(text: str) -> str:
    """Return *text* as a part of an address."""
    return "".join(f"%{byte:02X}" for byte in text.encode())


def request_body(agent: AgentSpec, messages: Iterable[bytes]) -> Json:
    """Return the JSON of a request for the next reply."""
    given = {name: value for name, value in agent.parameters.items() if name not in OWN}
    config = given.get("generationConfig")
    body: Json = {name: value for name, value in given.items() if name in TOP}
    body["generationConfig"] = {
        **{name: value for name, value in given.items() if name not in TOP},
        **(config if isinstance(config, dict) else {}),
        "maxOutputTokens": agent.limits.max_output_tokens,
    }
    if agent.tools:
        body["tools"] = sent_tools(agent.tools)
    if agent.instructions.strip():
        body["systemInstruction"] = {"parts": [{"text": agent.instructions}]}
    heard = transcript(messages, provider=PROVIDER, model=agent.model)
    # Last, so that the text of a request is a prefix of the next one's.
    body["contents"] = conversation(heard)
    return body


def count_body(agent: AgentSpec, body: Json) -> Json:
    """Return the JSON of a request to count the prompt of *body*."""
    model = model_path(agent.model).removeprefix("/v1beta/")
    return {"generateContentRequest": {"model": model, **body}}
