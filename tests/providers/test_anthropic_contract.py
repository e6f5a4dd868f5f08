"""Anthropic's models hold the contract of all models."""

import pytest

from cueline.providers.anthropic.provider import PROVIDER
from cueline.testing.model_contract import ModelContract
from cueline.testing.model_server import error, events
from tests.providers.servers import BOTH, server_named
from tests.providers.streaming import block, ended, started


def text(*pieces):
    return block(
        0, {"type": "text", "text": ""}, *({"type": "text_delta", "text": p} for p in pieces)
    )


THOUGHTS = block(
    0,
    {"type": "thinking", "thinking": "", "signature": ""},
    {"type": "thinking_delta", "thinking": "Paris, "},
    {"type": "thinking_delta", "thinking": "then."},
    {"type": "signature_delta", "signature": "c2ln"},
)
WORDS = block(1, {"type": "text", "text": ""}, {"type": "text_delta", "text": "Let me see."})
CUT = block(
    0,
    {"type": "tool_use", "id": "toolu_1", "name": "get_weather", "input": {}},
    {"type": "input_json_delta", "partial_json": '{"city": "Par'},
)
CACHE = {"cache_read_input_tokens": 70, "cache_creation_input_tokens": 20}
BUSY = {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}
TOO_LONG = "prompt is too long: 208310 tokens > 200000 maximum"
FILTERED = "Output blocked by content filtering policy"


def failed(message):
    return error(
        400, {"type": "error", "error": {"type": "invalid_request_error", "message": message}}
    )


# 000-063
class TestAnthropic(ModelContract):
    provider = PROVIDER
    model = "claude-opus-4-6"
    signature = "c2ln"
    recorded = {  # noqa: RUF012
        "text": events(
            started(input_tokens=9),
            *text("It rains, ", "as it ", "often ", "does."),
            *ended("end_turn", output_tokens=7),
        ),
        "thinking": events(started(), *THOUGHTS, *WORDS, *ended("end_turn")),
        "cached": events(
            started(input_tokens=9, **CACHE), *text("Yes."), *ended("end_turn", output_tokens=33)
        ),
        "limit": events(started(), *text("It "), *ended("max_tokens", output_tokens=5)),
        "cut": events(started(), *CUT, *ended("max_tokens", output_tokens=5)),
        "too long": failed(TOO_LONG),
        "refusal": events(started(input_tokens=9), *ended("refusal", output_tokens=7)),
        "filtered": failed(FILTERED),
        "error in stream": events(started(), BUSY),
    }

    @pytest.fixture(params=BOTH)
    def server(self, request):
        with server_named(request, "anthropic") as server:
            yield server

    def stable(self, body):
        for name in ("messages", "system", "tools"):
            for part in body.get(name, []):
                for marked in part.get("content", [part]):
                    marked.pop("cache_control", None)
        return body
