"""The Ollama models, against servers on this machine."""

import json

import pytest

from cueline.actors.model_port import Delta
from cueline.errors import ProviderRefusedError, ProviderUnavailableError
from cueline.events.message import ImageBlock, TextBlock, ThinkingBlock, UserMessage
from cueline.providers.event_stream import CUT_CALL
from cueline.providers.factory import account_for
from cueline.providers.ollama.connection import USUAL
from cueline.providers.ollama.provider import PROVIDER
from cueline.providers.patience import patience_of
from tests.providers.test_ollama_request import WEATHER

HELLO = UserMessage(text="Weather?")
NATIVE = {"tool_protocol": "native"}


def lines(*pieces):
    return "".join(json.dumps({"model": "llama3.2", **piece}) + "\n" for piece in pieces).encode()


def said(**message):
    return {"message": {"role": "assistant", "content": "", **message}, "done": False}


def done(reason="stop"):
    counts = {"prompt_eval_count": 26, "eval_count": 7}
    return {**said(), "done": True, "done_reason": reason, **counts}


@pytest.fixture
async def ask(agent, request_for):
    asked = {}

    async def at(url, *messages, deltas=lambda _: None, **fields):
        fields = {"provider": "ollama", "model": "llama3.2", "base_url": url, **fields}
        account = account_for(agent(**fields), {})
        model = asked.setdefault(url, PROVIDER.make(account, None))
        return await model.reply(request_for(messages=messages or (HELLO,), **fields), deltas)

    yield at
    for model in asked.values():
        await model.close()


async def test_a_reply_comes_in_pieces_and_whole(vendor, ask):
    vendor.will_stream(
        lines(said(thinking="Hm."), said(content="It "), said(content="rains."), done())
    )
    came = []

    reply = await ask(vendor.url, deltas=came.append)

    thought = ThinkingBlock(text="Hm.", provider="ollama")
    assert (thought, TextBlock(text="It rains.")) == reply.content
    assert ("end_turn", "llama3.2", ()) == (reply.stop_reason, reply.model, reply.calls)
    assert (26, 7) == (reply.usage.input, reply.usage.output)
    assert [Delta("thinking", "Hm."), Delta("text", "It "), Delta("text", "rains.")] == came
    assert ["/api/chat"] == vendor.paths


async def test_calls_get_ids_that_are_the_same_each_time(vendor, ask):
    call = {"function": {"name": "get_weather", "arguments": {"city": "Paris"}}}
    named = {**call, "id": "call_x"}
    vendor.will_stream(lines(said(tool_calls=[call, named]), done()))

    reply = await ask(vendor.url, tools=(WEATHER,), parameters=NATIVE)

    assert ["call_1_0", "call_x"] == [call.id for call in reply.calls]
    assert "tool_use" == reply.stop_reason


# 000-030, C48
async def test_a_model_without_tools_calls_them_in_its_text(vendor, ask):
    vendor.will_fail(200, json.dumps({"capabilities": ["completion"]}).encode())
    text = 'Let me see.<tool_call>{"name": "get_weather", "arguments": {"city": "Paris"}}</tool_'
    vendor.will_stream(lines(said(content=text), said(content="call>"), done()))
    came = []

    reply = await ask(vendor.url, tools=(WEATHER,), deltas=came.append)

    (call,) = reply.calls
    assert ("get_weather", {"city": "Paris"}) == (call.name, call.arguments)
    assert ((TextBlock(text="Let me see."),), "tool_use") == (reply.content, reply.stop_reason)
    assert ("tools",) == reply.lacking
    assert [Delta("text", "Let me see.")] == came
    assert "tools" not in vendor.bodies[-1]


async def test_what_a_model_can_do_is_asked_once(vendor, ask):
    vendor.will_fail(200, json.dumps({"capabilities": ["completion", "tools"]}).encode())
    for _ in range(2):
        vendor.will_stream(lines(said(content="Rain."), done()))
        assert () == (await ask(vendor.url, tools=(WEATHER,))).lacking

    assert ["/api/show", "/api/chat", "/api/chat"] == vendor.paths


async def test_a_server_that_finds_no_tools_in_a_model_is_asked_without(vendor, ask):
    refused = b'{"error": "registry.ollama.ai/library/llama3.2 does not support tools"}'
    vendor.will_fail(404, b"404 page not found")
    vendor.will_fail(400, refused)
    for _ in range(2):
        vendor.will_stream(lines(said(content="Rain."), done()))

    first = await ask(vendor.url, tools=(WEATHER,))
    second = await ask(vendor.url, tools=(WEATHER,))

    assert (("tools",), ("tools",)) == (first.lacking, second.lacking)
    assert 4 == len(vendor.paths)


async def test_an_agent_that_insists_on_tools_gets_the_error(vendor, ask):
    vendor.will_fail(400, b'{"error": "llama3.2 does not support tools"}')

    with pytest.raises(ProviderRefusedError, match="does not support tools"):
        await ask(vendor.url, tools=(WEATHER,), parameters=NATIVE)


async def test_what_a_model_lacks_is_named(vendor, ask):
    vendor.will_fail(200, json.dumps({"capabilities": ["completion"]}).encode())
    vendor.will_stream(lines(said(content="Rain."), done()))
    image = ImageBlock(media_type="image/png", data="aGk=")

    seen = UserMessage(text="What is this?", attachments=(image,))
    reply = await ask(vendor.url, seen, parameters={"think": True})

    assert ("images", "thinking") == reply.lacking


def test_a_model_has_time_to_load(agent):
    slow, chosen = agent(), agent(parameters={"chunk_timeout_seconds": 9})

    assert (1800, 300) == (patience_of(slow, USUAL).total, patience_of(slow, USUAL).chunk)
    assert 9 == patience_of(chosen, USUAL).chunk


async def test_a_call_that_was_cut_off_does_not_run(vendor, ask):
    vendor.will_stream(lines(said(content='<tool_call>{"name": "get_wea'), done("length")))

    reply = await ask(vendor.url, tools=(WEATHER,), parameters={"tool_protocol": "prompt"})

    assert ("max_tokens", CUT_CALL) == (reply.stop_reason, reply.calls[0].problem)


# 000-057
async def test_a_missing_server_is_told_with_what_to_run(ask):
    with pytest.raises(ProviderUnavailableError) as caught:
        await ask("http://127.0.0.1:1")

    told = (
        "no Ollama server at http://127.0.0.1:1: start it with `ollama serve`, or set OLLAMA_HOST"
    )
    assert caught.value.message.startswith(told)
    assert ("network", {}) == (caught.value.kind, caught.value.used)


@pytest.mark.parametrize("tools", [(), (WEATHER,)])
async def test_a_missing_model_is_told_with_what_to_run(vendor, ask, tools):
    vendor.will_fail(404, b'{"error": "model \'llama3.2\' not found"}')

    with pytest.raises(
        ProviderRefusedError, match=r"has no model 'llama3\.2': run `ollama pull lla"
    ):
        await ask(vendor.url, tools=tools)


async def test_a_prompt_that_is_too_long_is_told_from_a_wrong_request(vendor, ask):
    vendor.will_fail(400, b'{"error": "the input length exceeds the context length"}')

    with pytest.raises(ProviderRefusedError, match=r"^context_too_long: "):
        await ask(vendor.url)


async def test_an_error_in_the_stream_is_worth_another_attempt(vendor, ask):
    vendor.will_stream(lines(said(content="It ")) + b'{"error": "llama runner process died"}\n')

    with pytest.raises(ProviderUnavailableError, match=r"unavailable: .*runner process died"):
        await ask(vendor.url)


@pytest.mark.parametrize(
    "stream",
    [
        lines(said(content="It rai")),
        b"{}\n",
        lines(said(tool_calls=[{"function": {}}]), done()),
        lines(said(tool_calls=[3]), done()),
        b"[1]\n",
    ],
)
async def test_half_a_reply_is_none(vendor, ask, stream):
    vendor.will_stream(stream)

    with pytest.raises(ProviderUnavailableError, match="malformed_reply"):
        await ask(vendor.url, tools=(WEATHER,), parameters=NATIVE)


async def test_the_server_names_its_models(vendor, agent):
    listed = [{"name": "llama3.2:latest"}, {"name": "qwen3:8b"}]
    vendor.will_fail(200, json.dumps({"models": listed}).encode())
    account = account_for(agent(provider="ollama", base_url=vendor.url), {})

    assert ["llama3.2:latest", "qwen3:8b"] == await PROVIDER.models(account)
