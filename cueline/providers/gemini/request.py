"""Builds Gemini's requests from neutral messages."""

import re
from collections.abc import Iterable, Iterator
from typing import Final

from cueline.events.agent import AgentSpec
from cueline.events.message import Message
from cueline.providers.gemini.conversation import PROVIDER, Json, conversation, sent_tools
from cueline.providers.patience import OWN, is_prompted
from cueline.providers.prompted_tools import as_text, instructions_with_tools
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
    prompted = is_prompted(agent)
    given = {name: value for name, value in agent.parameters.items() if name not in OWN}
    config = given.get("generationConfig")
    body: Json = {name: value for name, value in given.items() if name in TOP}
    body["generationConfig"] = {
        **{name: value for name, value in given.items() if name not in TOP},
        **(config if isinstance(config, dict) else {}),
        "maxOutputTokens": agent.limits.max_output_tokens,
    }
    if agent.tools and not prompted:
        body["tools"] = sent_tools(agent.tools)
    told = instructions_with_tools(agent.instructions, agent.tools if prompted else ())
    if told.strip():
        body["systemInstruction"] = {"parts": [{"text": told}]}
    heard: Iterator[Message] = transcript(messages, provider=PROVIDER, model=agent.model)
    # Last, so that the text of a request is a prefix of the next one's.
    body["contents"] = conversation(as_text(heard) if prompted else heard)
    return body


def count_body(agent: AgentSpec, body: Json) -> Json:
    """Return the JSON of a request to count the prompt of *body*."""
    model = model_path(agent.model).removeprefix("/v1beta/")
    return {"generateContentRequest": {"model": model, **body}}
