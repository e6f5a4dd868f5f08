"""The Anthropic model, by the real SDK, against servers on this machine."""

import asyncio
import json
from decimal import Decimal

import pytest

from cueline.errors import ProviderRefusedError, ProviderUnavailableError
from cueline.events.agent import AgentSpec, Price, ToolSpec
from cueline.events.message import (
    AssistantMessage,
    OpaqueBlock,
    TextBlock,
    ThinkingBlock,
    ToolCall,
    ToolMessage,
    Usage,
    UserMessage,
)
from cueline.providers.prices import cost_of
from tests.providers.streaming import block, ended, started

WEATHER = ToolSpec(
    name="get_weather",
    description="Tells the weather.",
    parameters={"type": "object", "properties": {"city": {"type": "string"}}},
    target="weather:get_weather",
    digest="d",
)
HELLO = UserMessage(text="What is the weather in Paris?")


@pytest.fixture
def url(llmock):
    return llmock.base_url("anthropic")


async def test_a_reply_comes_whole_with_its_usage(llmock, url, ask):
    llmock.reply("It rains, as it often does.")

    reply = await ask(url)

    assert (TextBlock(text="It rains, as it often does."),) == reply.content
    assert ("end_turn", "claude-opus-4-6", ()) == (reply.stop_reason, reply.model, reply.calls)
    assert reply.usage.input > 0
    assert reply.usage.output > 0


async def test_a_tool_is_asked_for_and_its_result_is_answered(llmock, url, ask):
    llmock.call_tool("get_weather", {"city": "Paris"})
    asked = await ask(url, HELLO, tools=(WEATHER,))
    (call,) = asked.calls

    said = AssistantMessage(content=asked.content, calls=asked.calls)
    result = ToolMessage(call=call.id, text="21 degrees")
    answered = await ask(url, HELLO, said, result, tools=(WEATHER,))

    assert ("get_weather", {"city": "Paris"}) == (call.name, call.arguments)
    assert ("tool_use", "end_turn") == (asked.stop_reason, answered.stop_reason)
    llmock.assert_resilient(strict=True)


async def test_a_tool_that_the_model_invented_is_passed_on(llmock, url, ask):
    llmock.break_tool_call("unknown_tool")

    reply = await ask(url, HELLO, tools=(WEATHER,))

    assert ["llmock_unknown_tool"] == [call.name for call in reply.calls]


async def test_arguments_that_are_not_json_are_kept_as_they_came(llmock, url, ask):
    llmock.break_tool_call("malformed_arguments")

    (call,) = (await ask(url, HELLO, tools=(WEATHER,))).calls

    assert {} == call.arguments
    assert call.malformed.startswith("{")


THOUGHTS = block(
    0,
    {"type": "thinking", "thinking": "", "signature": ""},
    {"type": "thinking_delta", "thinking": "Paris, "},
    {"type": "thinking_delta", "thinking": "then."},
    {"type": "signature_delta", "signature": "c2ln"},
)
HIDDEN = block(1, {"type": "redacted_thinking", "data": "xyz"})
WORDS = block(2, {"type": "text", "text": ""}, {"type": "text_delta", "text": "Let me see."})
ASKING = block(
    3,
    {"type": "tool_use", "id": "toolu_1", "name": "get_weather", "input": {}},
    {"type": "input_json_delta", "partial_json": '{"city": '},
    {"type": "input_json_delta", "partial_json": '"Paris"}'},
)
WHOLE = [
    started(input_tokens=9, cache_read_input_tokens=70, cache_creation_input_tokens=20),
    *THOUGHTS,
    *HIDDEN,
    *WORDS,
    *ASKING,
    *ended("tool_use", output_tokens=33),
]
SENT_BACK = [
    {"type": "thinking", "thinking": "Paris, then.", "signature": "c2ln"},
    {"type": "redacted_thinking", "data": "xyz"},
    {"type": "text", "text": "Let me see."},
    {"type": "tool_use", "id": "toolu_1", "name": "get_weather", "input": {"city": "Paris"}},
]


async def test_a_reply_is_told_in_neutral_blocks(vendor, ask):
    vendor.will_say(*WHOLE)

    reply = await ask(vendor.url)

    hidden = OpaqueBlock(provider="anthropic", data={"type": "redacted_thinking", "data": "xyz"})
    thoughts = ThinkingBlock(text="Paris, then.", signature="c2ln", provider="anthropic")
    assert (thoughts, hidden, TextBlock(text="Let me see.")) == reply.content
    assert (ToolCall(id="toolu_1", name="get_weather", arguments={"city": "Paris"}),) == reply.calls
    assert Usage(input=9, output=33, cache_read=70, cache_write=20) == reply.usage


# 000-066: what was cached is priced as such, and thoughts are part of the answer.
async def test_a_reply_is_priced_by_what_was_cached_and_thought(vendor, ask):
    vendor.will_say(*WHOLE)
    dear = Price(input=1000, output=2000, cache_read=100, cache_write=1250)
    agent = AgentSpec(
        name="a", provider="anthropic", model="claude-opus-4-6", prices={"anthropic/*": dear}
    )

    reply = await ask(vendor.url)
    cost = cost_of(agent, reply.model, reply.usage)

    assert (9 * 1000 + 70 * 100 + 20 * 1250 + 33 * 2000) / Decimal(1_000_000) == cost.usd
    assert "claude-opus-4-6-20260201" == reply.model


async def test_a_reply_goes_back_as_it_came(vendor, ask):
    """000-005, 002-021, C39, D4."""
    vendor.will_say(*WHOLE)
    vendor.will_say(*WHOLE)
    reply = await ask(vendor.url, HELLO)

    said = AssistantMessage(content=reply.content, calls=reply.calls)
    await ask(vendor.url, HELLO, said, ToolMessage(call="toolu_1", text="21 degrees"))

    assert SENT_BACK == vendor.bodies[1]["messages"][1]["content"]


async def test_thoughts_between_calls_go_back_in_their_places(vendor, ask):
    """I13: the API refuses thoughts that are not where they were, and so every later request."""
    thoughts = [{"type": "thinking", "thinking": str(n), "signature": f"s{n}"} for n in range(2)]
    calls = [{"type": "tool_use", "id": f"t{n}", "name": "go", "input": {}} for n in range(3)]
    replied = [thoughts[0], calls[0], thoughts[1], calls[1], calls[2]]
    streamed = [event for n, start in enumerate(replied) for event in block(n, start)]
    vendor.will_say(started(), *streamed, *ended("tool_use"))
    vendor.will_say(*WHOLE)
    reply = await ask(vendor.url, HELLO)

    said = AssistantMessage(content=reply.content, calls=reply.calls)
    await ask(vendor.url, HELLO, said, *(ToolMessage(call=f"t{n}", text="") for n in range(3)))

    assert replied == vendor.bodies[1]["messages"][1]["content"]


async def test_a_gateway_gets_the_key_in_both_headers(vendor, ask):
    vendor.will_say(*WHOLE)

    await ask(vendor.url)

    headers = {name.lower(): value for name, value in vendor.headers[0].items()}
    key = "sk-test-0123456789"
    assert (key, f"Bearer {key}") == (headers["x-api-key"], headers["authorization"])


async def test_parameters_are_passed_on_as_they_are(vendor, ask):
    vendor.will_say(*WHOLE)

    await ask(vendor.url, parameters={"brand_new": {"a": 1}, "timeout_seconds": 5})

    body = vendor.bodies[0]
    assert ({"a": 1}, 8192, True) == (body["brand_new"], body["max_tokens"], body["stream"])
    assert "timeout_seconds" not in body


@pytest.mark.parametrize("came", ['{"city": "Par', ""])
async def test_a_call_cut_off_by_the_limit_is_not_run_and_says_why(vendor, ask, came):
    cut = {"type": "input_json_delta", "partial_json": came}
    asking = {"type": "tool_use", "id": "toolu_1", "name": "get_weather", "input": {}}
    vendor.will_say(started(), *block(0, asking, cut), *ended("max_tokens", output_tokens=5))

    reply = await ask(vendor.url)

    assert ("max_tokens", [came]) == (
        reply.stop_reason,
        [call.malformed for call in reply.calls],
    )
    assert "limits.max_output_tokens" in reply.calls[0].problem


async def test_a_call_that_is_whole_runs_though_the_answer_was_cut_off_after_it(vendor, ask):
    words = block(4, {"type": "text", "text": "And th"})
    vendor.will_say(*WHOLE[:-2], *words, *ended("max_tokens", output_tokens=5))

    (call,) = (await ask(vendor.url)).calls

    assert ({"city": "Paris"}, None) == (call.arguments, call.problem)


async def test_a_model_that_declines_has_refused(vendor, ask):
    vendor.will_say(started(input_tokens=9), *ended("refusal", output_tokens=7))

    with pytest.raises(ProviderRefusedError, match="refused: the model declined") as caught:
        await ask(vendor.url)

    assert {"input": 9, "output": 7, "cache_read": 0, "cache_write": 0} == caught.value.used


async def test_a_refusal_of_which_no_use_is_told_has_not_used_nothing(vendor, ask):
    vendor.will_say(started(), *ended("refusal"))

    with pytest.raises(ProviderRefusedError, match="refused: the model declined") as caught:
        await ask(vendor.url)

    assert caught.value.used is None


USE_LAST = {"type": "message_delta", "delta": {}, "usage": {"output_tokens": 8}}


# As gateways do: what the use came to is told once more, and who answered is not.
async def test_a_reply_ends_as_was_said_whatever_is_told_after(vendor, ask):
    first = started(input_tokens=9)
    first["message"]["model"] = None
    delta, stop = ended("end_turn", output_tokens=7)
    vendor.will_say(first, delta, USE_LAST, stop)

    reply = await ask(vendor.url)

    assert ("end_turn", "", 8) == (reply.stop_reason, reply.model, reply.usage.output)


async def test_blocks_that_are_given_one_index_are_all_told(vendor, ask):
    vendor.will_say(*[{**event, "index": 0} if "index" in event else event for event in WHOLE])

    reply = await ask(vendor.url)

    assert ["thinking", "opaque", "text"] == [part.kind for part in reply.content]
    assert ["toolu_1"] == [call.id for call in reply.calls]


async def test_a_reply_that_begins_anew_asks_for_nothing_twice(vendor, ask):
    vendor.will_say(*WHOLE[:-2], *WHOLE)

    reply = await ask(vendor.url)

    assert ["thinking", "opaque", "text"] == [part.kind for part in reply.content]
    assert ["toolu_1"] == [call.id for call in reply.calls]


# How the answer before it ended, and what that used, is not how this one does.
@pytest.mark.parametrize("reason", ["end_turn", "refusal"])
async def test_a_reply_that_begins_anew_and_breaks_off_is_no_whole_one(vendor, ask, reason):
    delta, stop = ended(reason, output_tokens=7)
    vendor.will_say(started(input_tokens=9), delta, started(input_tokens=9), stop)

    with pytest.raises(ProviderUnavailableError, match="malformed_reply") as caught:
        await ask(vendor.url)

    assert caught.value.used is None


# Before that, nobody knows how much was answered, and the whole reservation counts.
async def test_what_a_broken_reply_used_is_told_only_at_its_end(vendor, ask):
    told = [started(input_tokens=9), *ended("end_turn", output_tokens=7)]
    vendor.will_say(*told[:1])
    vendor.will_say(*told[:-1])

    with pytest.raises(ProviderUnavailableError) as cut:
        await ask(vendor.url)
    with pytest.raises(ProviderUnavailableError) as late:
        await ask(vendor.url)

    assert (None, (9, 7)) == (cut.value.used, (late.value.used["input"], late.value.used["output"]))


@pytest.mark.parametrize(
    "body", [b"[1]", b'{"error": "x"}', b'{"error": {"type": [], "message": 7}}']
)
async def test_an_error_of_an_odd_shape_is_known_by_its_status(vendor, ask, body):
    vendor.will_fail(400, body)

    with pytest.raises(ProviderRefusedError, match="invalid_request: HTTP 400, no type"):
        await ask(vendor.url)


async def test_neither_key_nor_conversation_follow_a_redirect(vendor, ask):
    vendor.will_fail(307, b"", location=f"{vendor.url}/elsewhere")

    with pytest.raises(ProviderRefusedError, match="HTTP 307: the server redirects to"):
        await ask(vendor.url)

    assert 1 == len(vendor.bodies)


async def test_an_error_that_nobody_knows_is_permanent(vendor, ask):
    vendor.will_fail(418, b"<h1>I am a teapot</h1>")

    with pytest.raises(ProviderRefusedError, match="unknown: HTTP 418, no type"):
        await ask(vendor.url)


@pytest.mark.parametrize("told", ["sk-test-0123456789", "sk-test-0", "…23456789"])
async def test_a_key_that_is_repeated_to_us_is_not_passed_on(vendor, ask, told):
    """002-013; nor is any part of it, of 8 characters or more."""
    said = f"{told} is bad"
    body = json.dumps({"error": {"type": "authentication_error", "message": said}}).encode()
    vendor.will_fail(401, body)

    with pytest.raises(ProviderRefusedError, match=r"auth: .*\[redacted\] is bad") as caught:
        await ask(vendor.url)

    assert caught.value.__cause__ is None
    assert caught.value.__suppress_context__


async def test_closing_lets_a_call_in_flight_end(vendor, ask, claude_at):
    vendor.will_say(*WHOLE)
    vendor.may_answer.clear()
    call = asyncio.create_task(ask(vendor.url))
    assert await asyncio.to_thread(vendor.was_asked.wait, 10)

    await claude_at(vendor.url).close()
    vendor.may_answer.set()

    assert "tool_use" == (await call).stop_reason


async def test_a_closed_model_connects_anew(vendor, ask, claude_at):
    vendor.will_say(*WHOLE)
    vendor.will_say(*WHOLE)
    await ask(vendor.url)

    await claude_at(vendor.url).close()

    assert "tool_use" == (await ask(vendor.url)).stop_reason
