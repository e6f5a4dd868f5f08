"""Builds Anthropic's requests from neutral messages."""

from collections.abc import Iterable
from typing import Final

from cueline.events.agent import AgentSpec
from cueline.providers.anthropic.conversation import Json, conversation
from cueline.providers.patience import OWN

COUNTED: Final = frozenset(
    {
        "cache_control",
        "messages",
        "model",
        "output_config",
        "speed",
        "system",
        "thinking",
        "tool_choice",
        "tools",
    }
)
"""The fields of the counting endpoint, which refuses all others."""
WEIGHTLESS: Final = frozenset(
    {
        "inference_geo",
        "max_tokens",
        "metadata",
        "service_tier",
        "stop_sequences",
        "temperature",
        "top_k",
        "top_p",
    }
)
"""Fields that add nothing to the prompt."""

PROMPT_CACHE: Final = "prompt_cache"
"""cueline's own parameter: whether the prompt is marked for the vendor's cache."""
CACHED: Final = {"cache_control": {"type": "ephemeral"}}


def request_body(agent: AgentSpec, messages: Iterable[bytes], *, is_vendor: bool = True) -> Json:
    """Return the JSON of a request for the next reply, as a stream.

    For a server that is not the vendor's, instructions are a plain text, and there are no
    marks: some refuse a list of blocks as `system`. The parameter `prompt_cache` says otherwise.
    """
    is_marked = agent.parameters.get(PROMPT_CACHE, is_vendor)
    body: Json = {
        "model": agent.model,
        "max_tokens": agent.limits.max_output_tokens,
        "messages": conversation(messages),
        **{n: value for n, value in agent.parameters.items() if n not in OWN | {PROMPT_CACHE}},
    }
    if agent.tools:
        body["tools"] = [
            {"name": t.name, "description": t.description, "input_schema": t.parameters}
            for t in agent.tools
        ]
    if agent.instructions.strip():
        told = [{"type": "text", "text": agent.instructions}]
        body["system"] = told if is_marked else agent.instructions
    if is_marked:
        mark_for_cache(body)
    return body


def count_body(body: Json) -> Json | None:
    """Return the JSON of a request to count the prompt of *body*.

    Returns None if a part of it cannot be counted.
    """
    if not body.keys() <= COUNTED | WEIGHTLESS:
        return None
    return {name: body[name] for name in body.keys() & COUNTED}


def mark_for_cache(body: Json) -> None:
    """Mark how much of the prompt the API should cache for the next request.

    The last message is marked for the next turn. The one of the turn before is marked
    because the API looks back over 20 blocks only, and a turn may have more calls.
    """
    users = [message for message in body["messages"] if message["role"] == "user"]
    prefix = body.get("system") or body.get("tools")
    for blocks in (prefix, *(message["content"] for message in users[-2:])):
        if blocks:
            blocks[-1] |= CACHED
