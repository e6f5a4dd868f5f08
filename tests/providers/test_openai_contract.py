"""OpenAI's models hold the contract of all models, in both dialects."""

import pytest

from cueline.providers.openai.provider import PROVIDER
from cueline.testing.model_contract import ModelContract
from cueline.testing.model_server import error, events
from tests.providers.servers import LlmockServer

PIECES = ("It rains, ", "as it ", "often ", "does.")
TOO_LONG = {"code": "context_length_exceeded", "type": "invalid_request_error", "message": "no"}


def chunk(finish=None, usage=None, **delta):
    told = {"id": "chatcmpl-1", "object": "chat.completion.chunk", "model": "gpt-6.1-terra"}
    choice = {"index": 0, "delta": delta, "finish_reason": finish}
    return {**told, "choices": [choice], "usage": usage}


def chat(*chunks, **usage):
    last = {
        **chunk(),
        "choices": [],
        "usage": usage or {"prompt_tokens": 9, "completion_tokens": 7},
    }
    return events(*chunks, last, end="[DONE]")


def asked(arguments, **more):
    function = {"name": "get_weather", "arguments": arguments}
    return [{"index": 0, "id": "call_1", "type": "function", "function": function, **more}]


class TestOpenAIChat(ModelContract):
    provider = PROVIDER
    title = "openai (chat)"
    lacks = frozenset({"files"})
    parameters = {"dialect": "chat", "server": "api.deepseek.com"}  # noqa: RUF012
    signature = "Paris, then."
    recorded = {  # noqa: RUF012
        "text": chat(*(chunk(content=piece) for piece in PIECES), chunk("stop")),
        "thinking": chat(
            chunk(role="assistant", reasoning_content="Paris, "),
            chunk(reasoning_content="then."),
            chunk(content="Let me see."),
            chunk("stop"),
        ),
        "cached": chat(
            chunk(content="Yes."),
            chunk("stop"),
            prompt_tokens=79,
            completion_tokens=33,
            prompt_tokens_details={"cached_tokens": 70},
        ),
        "cut": chat(chunk(tool_calls=asked('{"city": "Par')), chunk("length")),
        "too long": error(400, {"error": TOO_LONG}),
        "refusal": chat(chunk(refusal="I cannot "), chunk(refusal="do that."), chunk("stop")),
        "filtered": chat(chunk(content="So"), chunk("content_filter")),
        "error in stream": events(
            chunk(content="So"), {"error": {"code": 502, "message": "Provider disconnected"}}
        ),
    }

    @pytest.fixture
    def server(self, llmock):
        return LlmockServer(llmock, llmock.base_url("openai"))


def response(status="completed", **more):
    usage = {"input_tokens": 9, "output_tokens": 7, "total_tokens": 16}
    told = {"id": "resp_1", "object": "response", "model": "gpt-6.1-terra-2026-09-01"}
    return {**told, "status": status, "output": [], "usage": usage, **more}


def ended(status="completed", **more):
    return {"type": f"response.{status}", "response": response(status, **more)}


def item(index, kind, deltas=(), **fields):
    first = {"type": kind, "id": f"i{index}", "status": "in_progress", **fields}
    yield {"type": "response.output_item.added", "output_index": index, "item": first}
    yield from ({"output_index": index, "item_id": f"i{index}", **delta} for delta in deltas)


def done(index, kind, deltas=(), **fields):
    yield from item(index, kind, deltas)
    whole = {"type": kind, "id": f"i{index}", **fields}
    yield {"type": "response.output_item.done", "output_index": index, "item": whole}


def message(index, *pieces, **more):
    text = {"type": "output_text", "text": "".join(pieces), "annotations": []}
    deltas = ({"type": "response.output_text.delta", "delta": piece} for piece in pieces)
    return done(index, "message", deltas, role="assistant", content=[text], **more)


THOUGHTS = [
    {"type": "response.reasoning_summary_text.delta", "summary_index": 0, "delta": "Paris, "},
    {"type": "response.reasoning_summary_text.delta", "summary_index": 0, "delta": "then."},
]
SUMMARY = [{"type": "summary_text", "text": "Paris, then."}]
STARTED = {"type": "response.created", "response": response("in_progress", usage=None)}
HALF = {"type": "response.function_call_arguments.delta", "delta": '{"city": "Par'}
REFUSED = {"type": "refusal", "refusal": "I cannot do that."}


class TestOpenAIResponses(ModelContract):
    provider = PROVIDER
    title = "openai (responses)"
    parameters = {"dialect": "responses"}  # noqa: RUF012
    signature = "gAAAc2ln"
    recorded = {  # noqa: RUF012
        "text": events(STARTED, *message(0, *PIECES), ended()),
        "thinking": events(
            STARTED,
            *done(0, "reasoning", THOUGHTS, summary=SUMMARY, encrypted_content="gAAAc2ln"),
            *message(1, "Let me see."),
            ended(),
        ),
        "cached": events(
            STARTED,
            *message(0, "Yes."),
            ended(
                usage={
                    "input_tokens": 79,
                    "output_tokens": 33,
                    "input_tokens_details": {"cached_tokens": 70},
                }
            ),
        ),
        "cut": events(
            STARTED,
            *item(0, "function_call", [HALF], call_id="c", name="get_weather", arguments=""),
            ended("incomplete", incomplete_details={"reason": "max_output_tokens"}),
        ),
        "too long": error(400, {"error": TOO_LONG}),
        "refusal": events(STARTED, *done(0, "message", content=[REFUSED]), ended()),
        "filtered": events(
            STARTED, ended("incomplete", incomplete_details={"reason": "content_filter"})
        ),
        "error in stream": events(
            STARTED,
            {
                "type": "response.failed",
                "response": response("failed", error={"code": "server_error", "message": "Oh."}),
            },
        ),
    }

    @pytest.fixture
    def server(self, llmock):
        return LlmockServer(llmock, llmock.base_url("openai"))
