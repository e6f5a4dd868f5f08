"""The names of the GenAI conventions of OpenTelemetry, and what cueline adds to them.

The conventions are in development, and their names have changed before: this is the one file
that has them (<https://github.com/open-telemetry/semantic-conventions-genai>).
"""

import json
from collections.abc import Mapping, Sequence
from typing import Final

from cueline.events.message import TextBlock, ToolCall, Usage
from cueline.events.session import ModelReplied

VERSION: Final = "0.1.0"
"""The version of the conventions."""

CHAT: Final = "chat"
EXECUTE_TOOL: Final = "execute_tool"
INVOKE_AGENT: Final = "invoke_agent"

OPERATION: Final = "gen_ai.operation.name"
PROVIDER: Final = "gen_ai.provider.name"
AGENT: Final = "gen_ai.agent.name"
CONVERSATION: Final = "gen_ai.conversation.id"
REQUEST_MODEL: Final = "gen_ai.request.model"
RESPONSE_MODEL: Final = "gen_ai.response.model"
FINISH_REASONS: Final = "gen_ai.response.finish_reasons"
INPUT_TOKENS: Final = "gen_ai.usage.input_tokens"
OUTPUT_TOKENS: Final = "gen_ai.usage.output_tokens"
CACHE_READ: Final = "gen_ai.usage.cache_read.input_tokens"
CACHE_WRITE: Final = "gen_ai.usage.cache_creation.input_tokens"
TOOL: Final = "gen_ai.tool.name"
TOOL_TYPE: Final = "gen_ai.tool.type"
CALL_ID: Final = "gen_ai.tool.call.id"
# Content, which is exported only if somebody asks for it.
INPUT_MESSAGES: Final = "gen_ai.input.messages"
OUTPUT_MESSAGES: Final = "gen_ai.output.messages"
ARGUMENTS: Final = "gen_ai.tool.call.arguments"
RESULT: Final = "gen_ai.tool.call.result"
# Of the general conventions.
ERROR_TYPE: Final = "error.type"
# Not in the conventions.
EFFECT: Final = "cueline.effect"
ATTEMPT: Final = "cueline.attempt"
OUTCOME: Final = "cueline.outcome"
COST: Final = "cueline.cost.usd"
CORRELATION: Final = "cueline.correlation_id"
LOG: Final = "cueline.log"

Attributes = dict[str, str | int | float | Sequence[str]]


def usage_attributes(usage: Usage) -> Attributes:
    """Return the tokens of a model call; those of the cache are part of the input."""
    return {
        INPUT_TOKENS: usage.sent,
        OUTPUT_TOKENS: usage.output,
        CACHE_READ: usage.cache_read,
        CACHE_WRITE: usage.cache_write,
    }


def text_message(role: str, text: str) -> str:
    """Return a list of one message with *text*, as JSON."""
    return json_text([{"role": role, "parts": [{"type": "text", "content": text}]}])


def reply_message(replied: ModelReplied) -> str:
    """Return a list with the reply of a model, as JSON."""
    parts: list[Mapping[str, object]] = [
        {"type": "text", "content": block.text}
        for block in replied.content
        if isinstance(block, TextBlock)
    ]
    parts += [
        {"type": "tool_call", "id": call.id, "name": call.name, "arguments": call.arguments}
        for call in replied.calls
    ]
    reply = {"role": "assistant", "parts": parts, "finish_reason": replied.stop_reason}
    return json_text([reply])


def call_arguments(call: ToolCall) -> str:
    """Return the arguments of a call, as JSON."""
    return json_text(call.arguments)


def json_text(value: object) -> str:
    """Return *value* as JSON."""
    return json.dumps(value, ensure_ascii=False)
