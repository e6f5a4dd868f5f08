"""The Gemini models, against servers on this machine."""

import json
from decimal import Decimal

import pytest

from cueline.actors.model_port import Delta
from cueline.errors import ProviderRefusedError, ProviderUnavailableError
from cueline.events.message import (
    AssistantMessage,
    OpaqueBlock,
    TextBlock,
    ThinkingBlock,
    ToolMessage,
    Usage,
    UserMessage,
)
from cueline.providers.factory import account_for
from cueline.providers.gemini.provider import PROVIDER
from cueline.providers.prices import cost_of
from tests.providers.conftest import KEY
from tests.providers.test_gemini_request import MODEL, WEATHER

HELLO = UserMessage(text="Weather?")
CALL = {"functionCall": {"name": "get_weather", "args": {"city": "Paris"}}}


def events(*pieces):
    return "".join(f"data: {json.dumps(piece)}\r\n\r\n" for piece in pieces).encode()


def said(*parts, **candidate):
    content = {"role": "model", "parts": list(parts)}
    return {"candidates": [{"content": content, "index": 0, **candidate}], "modelVersion": MODEL}


def done(reason="STOP", **counts):
    counts = {"promptTokenCount": 79, "candidatesTokenCount": 3, **counts}
    return {**said(finishReason=reason), "usageMetadata": counts}


@pytest.fixture
async def model_at(agent):
    asked = {}

    def at(url):
        account = account_for(agent(provider="gemini", base_url=url), {"GEMINI_API_KEY": KEY})
        return asked.setdefault(url, PROVIDER.make(account, None))

    yield at
    for model in asked.values():
        await model.close()


@pytest.fixture
def ask(model_at, request_for):
    async def at(url, *messages, deltas=lambda _: None, **fields):
        fields = {"provider": "gemini", "model": MODEL, **fields}
        return await model_at(url).reply(
            request_for(messages=messages or (HELLO,), **fields), deltas
        )

    return at


async def test_a_reply_comes_in_pieces_and_whole(vendor, ask, agent):
    vendor.will_stream(
        events(
            said({"text": "Hm", "thought": True}),
            said({"text": ".", "thought": True}),
            said({"text": "It "}),
            said({"text": "rains."}),
            said({"text": "", "thoughtSignature": "c2ln"}),
            done(cachedContentTokenCount=70, thoughtsTokenCount=30),
        )
    )
    came = []

    reply = await ask(vendor.url, deltas=came.append)

    sign = OpaqueBlock(provider="gemini", model=MODEL, data={"thoughtSignature": "c2ln"})
    thought = ThinkingBlock(text="Hm.", provider="gemini")
    assert (thought, TextBlock(text="It rains."), sign) == reply.content
    assert ("end_turn", MODEL) == (reply.stop_reason, reply.model)
    assert Usage(input=9, output=33, cache_read=70) == reply.usage
    assert [("thinking", "Hm."), ("text", "It rains.")] == [
        (kind, "".join(d.text for d in came if d.kind == kind)) for kind in ("thinking", "text")
    ]
    assert [f"/v1beta/models/{MODEL}:streamGenerateContent?alt=sse"] == vendor.paths
    assert KEY == vendor.headers[0]["x-goog-api-key"]
    cost = cost_of(agent(provider="gemini", model=MODEL), reply.model, reply.usage)
    assert cost.usd > Decimal(0)


async def test_calls_keep_their_signatures_and_get_ids(vendor, ask):
    paris = {**CALL, "thoughtSignature": "c2ln"}
    rome = {"functionCall": {"id": "theirs", "name": "get_weather"}}
    for _ in range(2):
        vendor.will_stream(events(said(paris, rome), done()))

    reply = await ask(vendor.url, tools=(WEATHER,))
    answered = AssistantMessage(content=reply.content, calls=reply.calls)
    results = [ToolMessage(call=call.id, text="Rain.") for call in reply.calls]
    await ask(vendor.url, HELLO, answered, *results, tools=(WEATHER,))

    assert ["call_1_0", "theirs"] == [call.id for call in reply.calls]
    assert [{"city": "Paris"}, {}] == [call.arguments for call in reply.calls]
    assert "tool_use" == reply.stop_reason
    sent = vendor.bodies[-1]["contents"][1]["parts"]
    assert "c2ln" == sent[0]["thoughtSignature"]
    assert {"name", "args", "id"} == sent[0]["functionCall"].keys()


async def test_parts_of_other_kinds_are_kept_as_they_came(vendor, ask):
    code = {"executableCode": {"language": "PYTHON", "code": "print(1)"}}
    vendor.will_stream(events(said({"text": "a"}), said(code), said({"text": "b"}), done()))

    reply = await ask(vendor.url)

    kept = OpaqueBlock(provider="gemini", model=MODEL, data=code)
    assert (TextBlock(text="a"), kept, TextBlock(text="b")) == reply.content


async def test_arguments_that_are_no_object_are_kept_as_they_came(vendor, ask):
    vendor.will_stream(events(said({"functionCall": {"name": "f", "args": [1]}}), done()))

    (call,) = (await ask(vendor.url)).calls

    assert ({}, "[1]") == (call.arguments, call.malformed)


async def test_a_reply_that_reached_the_limit_says_so(vendor, ask):
    vendor.will_stream(events(said({"text": "It ra"}), done("MAX_TOKENS")))

    assert "max_tokens" == (await ask(vendor.url)).stop_reason


async def test_calls_are_read_from_the_text_where_an_agent_asks_for_it(vendor, ask):
    text = 'So: <tool_call>{"name": "get_weather", "arguments": {"city": "Paris"}}</tool_call>'
    vendor.will_stream(events(said({"text": text}), done()))
    came = []

    how = {"tools": (WEATHER,), "parameters": {"tool_protocol": "prompt"}}
    reply = await ask(vendor.url, deltas=came.append, **how)

    assert ["get_weather"] == [call.name for call in reply.calls]
    assert (TextBlock(text="So:"),) == reply.content
    assert [Delta("text", "So: ")] == came


@pytest.mark.parametrize(
    ("piece", "error"),
    [
        (done("SAFETY"), ProviderRefusedError("content_filtered", "")),
        (done("PROHIBITED_CONTENT"), ProviderRefusedError("content_filtered", "")),
        (done("RECITATION"), ProviderRefusedError("content_filtered", "")),
        (done("LANGUAGE"), ProviderRefusedError("refused", "")),
        (done("MALFORMED_FUNCTION_CALL"), ProviderUnavailableError("malformed_reply", "")),
        (done("OTHER"), ProviderUnavailableError("malformed_reply", "")),
        (
            {"promptFeedback": {"blockReason": "SAFETY"}},
            ProviderRefusedError("content_filtered", ""),
        ),
        (
            {"error": {"code": 503, "message": "overloaded", "status": "UNAVAILABLE"}},
            ProviderUnavailableError("unavailable", ""),
        ),
        (said({"text": "It"}), ProviderUnavailableError("malformed_reply", "")),
        ({"candidates": 5}, ProviderUnavailableError("malformed_reply", "")),
    ],
)
async def test_an_answer_that_was_stopped_has_a_kind(vendor, ask, piece, error):
    vendor.will_stream(events(said({"text": "It "}), piece))

    with pytest.raises(type(error)) as caught:
        await ask(vendor.url)

    assert error.kind == caught.value.kind


async def test_a_stopped_answer_is_paid_for(vendor, ask):
    vendor.will_stream(events(done("SAFETY")))

    with pytest.raises(ProviderRefusedError) as caught:
        await ask(vendor.url)

    assert (79, 3) == (caught.value.used["input"], caught.value.used["output"])


DELAY = [{"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "34.5s"}]
BAD_KEY = [{"@type": "type.googleapis.com/google.rpc.ErrorInfo", "reason": "API_KEY_INVALID"}]


@pytest.mark.parametrize(
    ("status", "name", "details", "message", "kind"),
    [
        (429, "RESOURCE_EXHAUSTED", DELAY, "quota", "rate_limited"),
        (503, "UNAVAILABLE", None, "The model is overloaded.", "unavailable"),
        (504, "DEADLINE_EXCEEDED", None, "late", "timeout"),
        (400, "INVALID_ARGUMENT", BAD_KEY, "API key not valid.", "auth"),
        (400, "FAILED_PRECONDITION", None, "enable billing", "auth"),
        (400, "INVALID_ARGUMENT", [3], "no such field", "invalid_request"),
        (
            400,
            "INVALID_ARGUMENT",
            None,
            "The input token count (1200000) exceeds the maximum number of tokens allowed.",
            "context_too_long",
        ),
        (404, "NOT_FOUND", None, "models/x is not found", "invalid_request"),
    ],
)
async def test_an_error_has_a_kind(vendor, ask, status, name, details, message, kind):  # noqa: PLR0917 - a table
    error = {"error": {"code": status, "message": message, "status": name, "details": details}}
    vendor.will_fail(status, json.dumps(error).encode())

    with pytest.raises((ProviderRefusedError, ProviderUnavailableError)) as caught:
        await ask(vendor.url)

    assert kind == caught.value.kind
    assert message in caught.value.message


async def test_the_vendor_says_when_to_come_again(vendor, ask):
    error = {"error": {"code": 429, "status": "RESOURCE_EXHAUSTED", "details": DELAY}}
    vendor.will_fail(429, json.dumps([error]).encode())

    with pytest.raises(ProviderUnavailableError) as caught:
        await ask(vendor.url)

    assert 34.5 == caught.value.retry_after


async def test_a_page_of_a_proxy_is_an_error(vendor, ask):
    vendor.will_fail(502, b"<html>Bad gateway</html>")

    with pytest.raises(ProviderUnavailableError, match=r"unavailable: .*Bad gateway"):
        await ask(vendor.url)


async def test_a_prompt_is_counted(vendor, model_at, request_for):
    vendor.will_fail(200, b'{"totalTokens": 31}')
    request = request_for(provider="gemini", model=MODEL, messages=(HELLO,))

    assert 31 == await model_at(vendor.url).count(request)
    assert [f"/v1beta/models/{MODEL}:countTokens"] == vendor.paths


@pytest.mark.parametrize("answer", [b"{}", b"[]", b'{"totalTokens": "many"}'])
async def test_a_count_that_is_none_is_malformed(vendor, model_at, request_for, answer):
    vendor.will_fail(200, answer)

    with pytest.raises(ProviderUnavailableError, match="malformed_reply"):
        await model_at(vendor.url).count(request_for(provider="gemini", messages=(HELLO,)))


async def test_the_server_names_its_models(llmock, agent):
    account = account_for(
        agent(provider="gemini", base_url=llmock.base_url("gemini")), {"GEMINI_API_KEY": KEY}
    )

    assert "gemini-2.5-pro" in await PROVIDER.models(account)


async def test_a_tool_is_called_and_its_result_answered(llmock, ask):
    url = llmock.base_url("gemini")
    llmock.call_tool("get_weather", {"city": "Paris"})
    asked = await ask(url, HELLO, tools=(WEATHER,))

    answered = AssistantMessage(content=asked.content, calls=asked.calls)
    result = ToolMessage(call=asked.calls[0].id, text="Rain.")
    reply = await ask(url, HELLO, answered, result, tools=(WEATHER,))

    assert ("tool_use", "end_turn") == (asked.stop_reason, reply.stop_reason)
    llmock.assert_resilient(strict=True)
