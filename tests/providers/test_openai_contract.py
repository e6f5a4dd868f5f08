"""OpenAI's models hold the contract of all models, in both dialects."""

import pytest

from cueline.providers.openai.provider import PROVIDER
from cueline.testing.model_contract import ModelContract
from cueline.testing.model_server import error, events
from tests.providers.aimock_server import TextCallServer
from tests.providers.servers import BOTH, server_named

PIECES = ("It rains, ", "as it ", "often ", "does.")
TOO_LONG = {"code": "context_length_exceeded", "type": "invalid_request_error", "message": "no"}


def chunk(finish=None, usage=None, **delta):
    told = {"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1790000000}
    choice = {"index": 0, "delta": delta, "finish_reason": finish}
    return {**told, "model": "gpt-6.1-terra", "choices": [choice], "usage": usage}


def chat(*chunks, **usage):
    used = {"prompt_tokens": 9, "completion_tokens": 7, "total_tokens": 16, **usage}
    return events(*chunks, {**chunk(), "choices": [], "usage": used}, end="[DONE]")


def asked(arguments, **more):
    function = {"name": "get_weather", "arguments": arguments}
    return [{"index": 0, "id": "call_1", "type": "function", "function": function, **more}]


# 000-063
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
            total_tokens=112,
            prompt_tokens_details={"cached_tokens": 70},
        ),
        "limit": chat(chunk(content="It "), chunk("length")),
        "cut": chat(chunk(tool_calls=asked('{"city": "Par')), chunk("length")),
        "too long": error(400, {"error": TOO_LONG}),
        "refusal": chat(chunk(refusal="I cannot "), chunk(refusal="do that."), chunk("stop")),
        "filtered": chat(chunk(content="So"), chunk("content_filter")),
        "error in stream": events(
            chunk(content="So"), {"error": {"code": 502, "message": "Provider disconnected"}}
        ),
    }

    @pytest.fixture(params=BOTH)
    def server(self, request):
        with server_named(request, "openai", "/v1") as server:
            yield server


# 000-030, 000-058
class TestOpenAIChatWithoutTools(TestOpenAIChat):
    title = "openai (tools in the prompt)"
    parameters = {**TestOpenAIChat.parameters, "tool_protocol": "prompt"}  # noqa: RUF012
    recorded = {  # noqa: RUF012
        **TestOpenAIChat.recorded,
        "cut": chat(chunk(content='<tool_call>{"name": "get_weather", "arg'), chunk("length")),
    }

    @pytest.fixture
    def server(self, aimock):
        with TextCallServer(aimock, "/v1") as server:
            yield server


def used(read=0, output=7):
    return {
        "input_tokens": 9 + read,
        "input_tokens_details": {"cached_tokens": read, "cache_write_tokens": 0},
        "output_tokens": output,
        "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": 9 + read + output,
    }


def response(status="completed", **more):
    told = {"id": "resp_1", "object": "response", "created_at": 1790000000, "tools": []}
    told |= {"model": "gpt-6.1-terra-2026-09-01", "parallel_tool_calls": True}
    told |= {"tool_choice": "auto", "output": [], "error": None, "usage": used()}
    return {**told, "status": status, **more}


def stream(*pieces):
    return events(*({**piece, "sequence_number": n} for n, piece in enumerate(pieces)))


def ended(status="completed", **more):
    return {"type": f"response.{status}", "response": response(status, **more)}


def item(index, kind, deltas=(), **fields):
    first = {"type": kind, "id": f"i{index}", "status": "in_progress", **fields}
    yield {"type": "response.output_item.added", "output_index": index, "item": first}
    yield from ({"output_index": index, "item_id": f"i{index}", **delta} for delta in deltas)


def done(index, kind, deltas=(), **fields):
    empty = {name: type(value)() for name, value in fields.items() if name != "role"}
    yield from item(index, kind, deltas, **{**fields, **empty})
    whole = {"type": kind, "id": f"i{index}", "status": "completed", **fields}
    yield {"type": "response.output_item.done", "output_index": index, "item": whole}


def message(index, *pieces, **more):
    text = {"type": "output_text", "text": "".join(pieces), "annotations": []}
    place = {"type": "response.output_text.delta", "content_index": 0, "logprobs": []}
    deltas = ({**place, "delta": piece} for piece in pieces)
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
        "text": stream(STARTED, *message(0, *PIECES), ended()),
        "thinking": stream(
            STARTED,
            *done(0, "reasoning", THOUGHTS, summary=SUMMARY, encrypted_content="gAAAc2ln"),
            *message(1, "Let me see."),
            ended(),
        ),
        "cached": stream(
            STARTED,
            *message(0, "Yes."),
            ended(usage=used(read=70, output=33)),
        ),
        "limit": stream(
            STARTED,
            *message(0, "It "),
            ended("incomplete", incomplete_details={"reason": "max_output_tokens"}),
        ),
        "cut": stream(
            STARTED,
            *item(0, "function_call", [HALF], call_id="c", name="get_weather", arguments=""),
            ended("incomplete", incomplete_details={"reason": "max_output_tokens"}),
        ),
        "too long": error(400, {"error": TOO_LONG}),
        "refusal": stream(
            STARTED, *done(0, "message", role="assistant", content=[REFUSED]), ended()
        ),
        "filtered": stream(
            STARTED, ended("incomplete", incomplete_details={"reason": "content_filter"})
        ),
        "error in stream": stream(
            STARTED,
            {
                "type": "response.failed",
                "response": response("failed", error={"code": "server_error", "message": "Oh."}),
            },
        ),
    }

    @pytest.fixture(params=BOTH)
    def server(self, request):
        with server_named(request, "openai", "/v1") as server:
            yield server
