"""What servers with OpenAI's protocol reply, each in its own way."""

import json

import pytest

from cueline.errors import ProviderRefusedError, ProviderUnavailableError
from cueline.events.message import (
    ImageBlock,
    OpaqueBlock,
    TextBlock,
    ThinkingBlock,
    ToolCall,
    Usage,
    UserMessage,
)
from cueline.providers.http import usual_fault
from cueline.providers.openai.chat import ChatReply
from cueline.providers.openai.responses import ResponsesReply
from cueline.providers.openai.servers import SERVERS, USUAL
from cueline.testing.model_example import TEXT, WEATHER
from cueline.testing.model_replies import PIXEL
from cueline.testing.model_server import RecordedServer, error
from tests.providers.test_openai_contract import (
    THOUGHTS,
    asked,
    chunk,
    done,
    ended,
    item,
    message,
    response,
)
from tests.providers.test_openai_contract import TestOpenAIChat as Chat
from tests.providers.test_openai_contract import chat as recorded_chat


def chat(*pieces, server=USUAL):
    reply = ChatReply(server, asked="m")
    for piece in pieces:
        reply.add(piece)
    return reply.whole()


def responses(*pieces):
    reply = ResponsesReply(asked="m")
    for piece in pieces:
        reply.add(piece)
    return reply.whole()


def call(name="go", arguments="{}", **more):
    return {"type": "function", "function": {"name": name, "arguments": arguments}, **more}


GO = (ToolCall(id="a", name="go", arguments={"n": 1}), ToolCall(id="b", name="go"))
FORMS = {
    "in pieces": [
        [call(index=0, id="a", arguments="")],
        [{"index": 0, "function": {"arguments": '{"n"'}}],
        [{"index": 0, "function": {"arguments": ": 1}"}}],
        [call(index=1, id="b", arguments="{}")],
    ],
    "mixed": [
        [call(index=0, id="a", arguments="")],
        [call(index=1, id="b", arguments="{")],
        [{"index": 0, "function": {"arguments": '{"n": 1}'}}],
        [{"index": 1, "function": {"arguments": "}"}}],
    ],
    "whole": [[call(index=0, id="a", arguments='{"n": 1}'), call(index=1, id="b")]],
    "whole, with one index": [
        [call(index=0, id="a", arguments='{"n": 1}')],
        [call(index=0, id="b")],
    ],
    "without an index": [[call(id="a", arguments='{"n": 1}'), call(id="b")]],
    "arguments as an object": [[call(index=0, id="a", arguments={"n": 1}), call(index=1, id="b")]],
    "id and name repeated": [
        [call(index=0, id="a", arguments='{"n"')],
        [call(index=0, id="a", arguments=": 1}")],
        [call(index=1, id="b", arguments="")],
    ],
}


@pytest.mark.parametrize("pieces", FORMS.values(), ids=FORMS)
def test_calls_are_read_however_a_server_sends_them(pieces):
    chunks = [chunk(tool_calls=piece) for piece in pieces]

    reply = chat(*chunks, chunk("tool_calls"))

    assert (GO, "tool_use") == (reply.calls, reply.stop_reason)


def test_calls_without_ids_get_ids():
    reply = chat(chunk(tool_calls=[call(index=0), call(index=1)]), chunk("stop"))

    assert ["call_0", "call_1"] == [each.id for each in reply.calls]


@pytest.mark.parametrize("field", ["reasoning_content", "reasoning"])
def test_thoughts_are_read_from_either_field(field):
    reply = chat(chunk(**{field: "hm"}), chunk(content="Yes."), chunk("stop"))

    assert (ThinkingBlock(text="hm", provider="openai"), TextBlock(text="Yes.")) == reply.content


def test_opaque_thoughts_are_kept_for_their_server_and_model():
    server = SERVERS["openrouter.ai"]
    pieces = [chunk(reasoning_details=[{"id": n}], content="So") for n in range(2)]

    reply = chat(*pieces, chunk("stop"), server=server)

    details = {"type": "reasoning_details", "reasoning_details": [{"id": 0}, {"id": 1}]}
    assert OpaqueBlock(provider="openai", model="m", data=details) == reply.content[0]


CACHES = {
    "as the vendor": ({"prompt_tokens_details": {"cached_tokens": 70}}, 70, 0),
    "with writes": ({"prompt_tokens_details": {"cache_write_tokens": 20}}, 0, 20),
    "beside hits and misses": ({"prompt_cache_hit_tokens": 70}, 70, 0),
    "at the top": ({"cached_tokens": 70}, 70, 0),
    "none": ({"prompt_tokens_details": None}, 0, 0),
}


@pytest.mark.parametrize(("more", "read", "written"), CACHES.values(), ids=CACHES)
def test_cached_tokens_are_found_wherever_a_server_tells_them(more, read, written):
    usage = {"prompt_tokens": 99, "completion_tokens": 7, **more}

    told = chat(chunk("stop", usage=usage)).usage

    assert (99, 7, read, written) == (told.sent, told.output, told.cache_read, told.cache_write)


def test_usage_may_come_in_a_place_of_its_own():
    last = {**chunk("stop"), "x_groq": {"usage": {"prompt_tokens": 3, "completion_tokens": 4}}}

    assert Usage(input=3, output=4) == chat(last).usage


def test_a_reply_without_usage_is_a_reply():
    assert Usage() == chat(chunk(content="Yes."), chunk("stop")).usage


REASONS = {
    "stop": "end_turn",
    "eos": "end_turn",
    "tool_calls": "end_turn",
    "length": "max_tokens",
}


@pytest.mark.parametrize(("theirs", "ours"), REASONS.items())
def test_reasons_to_stop_get_their_neutral_names(theirs, ours):
    assert ours == chat(chunk(content="Yes."), chunk(theirs)).stop_reason


def test_a_whole_call_before_the_limit_runs():
    calls = [*asked('{"city": "Paris"}'), {**asked('{"ci')[0], "index": 1, "id": "call_2"}]

    first, second = chat(chunk(tool_calls=calls), chunk("length")).calls

    assert (None, '{"ci') == (first.problem, second.malformed)


ERRORS = {
    "a status": ({"code": 429, "message": "slow"}, "rate_limited"),
    "a known type": ({"type": "overloaded_error", "message": "busy"}, "overloaded"),
    "a code of the vendor": ({"code": "rate_limit_exceeded", "message": "slow"}, "rate_limited"),
    "words": ("busy", "malformed_reply"),
    "no type": ({"message": "busy"}, "malformed_reply"),
}


@pytest.mark.parametrize(("error", "kind"), ERRORS.values(), ids=ERRORS)
def test_an_error_in_a_stream_has_a_kind(error, kind):
    with pytest.raises(ProviderUnavailableError) as caught:
        chat({"error": error})

    assert kind == caught.value.kind


FINAL = [
    ({"code": "invalid_prompt"}, "refused"),
    ({"type": "BadRequestError", "code": 400}, "invalid_request"),
    ({"code": "of_tomorrow"}, "unknown"),
]


@pytest.mark.parametrize(("error", "kind"), FINAL)
def test_an_error_in_a_stream_may_be_final(error, kind):
    with pytest.raises(ProviderRefusedError) as caught:
        chat({"error": error})

    assert kind == caught.value.kind


def test_a_reply_that_failed_at_its_end_is_none():
    with pytest.raises(ProviderUnavailableError, match="malformed_reply"):
        chat(chunk(content="So"), chunk("error"))


TOO_LONG = {
    "vllm": "This model's maximum context length is 4096 tokens. However, you requested 5000",
    "llama.cpp": "the request exceeds the available context size, try increasing it",
    "openai": "Your input exceeds the context window of this model.",
    "lm studio": "The number of tokens to keep is greater than the context length",
}


@pytest.mark.parametrize("words", TOO_LONG.values(), ids=TOO_LONG)
def test_each_server_has_its_own_words_for_a_prompt_that_is_too_long(words):
    error = {"type": "BadRequestError", "code": 400, "message": words}

    assert "context_too_long" == usual_fault(400, json.dumps({"error": error}), {}).kind


def test_an_unpaid_bill_is_not_waited_for():
    error = {"code": "insufficient_quota", "type": "insufficient_quota", "message": "pay"}
    fault = usual_fault(429, json.dumps({"error": error}), {"retry-after": "7200"})

    assert ("auth", 7200) == (fault.kind, fault.retry_after)  # it holds the account


def test_items_keep_their_order():
    thought = {"summary": [], "encrypted_content": "e"}
    reply = responses(
        *done(0, "reasoning", **thought),
        *done(1, "function_call", call_id="a", name="go", arguments='{"n": 1}'),
        *done(2, "reasoning", **thought),
        *message(3, "So.", phase="commentary"),
        *done(4, "function_call", call_id="b", name="go", arguments=""),
        ended(),
    )

    kinds = [part.data["type"] if part.kind == "opaque" else part.kind for part in reply.content]
    assert ["reasoning", "function_call", "reasoning", "phase", "text"] == kinds
    assert (GO, "tool_use") == (reply.calls, reply.stop_reason)
    assert "m" == reply.content[0].model


def test_thoughts_that_are_not_encrypted_are_shown_and_do_not_go_back():
    open_thoughts = [{"type": "reasoning_text", "text": "hm"}]
    summary = [{"type": "summary_text", "text": part} for part in ("One.", "Two.")]

    reply = responses(
        *done(0, "reasoning", THOUGHTS, summary=summary),
        *done(1, "reasoning", content=open_thoughts),
        ended(),
    )

    assert ["One.\n\nTwo.", "hm"] == [block.text for block in reply.content]


def test_text_that_was_cut_off_is_kept_though_its_item_did_not_end():
    deltas = [{"type": "response.output_text.delta", "delta": piece} for piece in ("So ", "it")]

    reply = responses(
        *item(4, "message", deltas, content=[]),
        ended("incomplete", incomplete_details={"reason": "max_output_tokens"}),
    )

    assert ((TextBlock(text="So it"),), "max_tokens") == (reply.content, reply.stop_reason)


def test_the_answering_model_is_named_as_it_names_itself():
    assert "gpt-6.1-terra-2026-09-01" == responses(*message(0, "So."), ended()).model


@pytest.mark.parametrize(
    ("error", "kind"), [({"code": "server_error"}, "unavailable"), (None, "malformed_reply")]
)
def test_a_response_that_failed_has_a_kind(error, kind):
    with pytest.raises(ProviderUnavailableError) as caught:
        responses({"type": "response.failed", "response": response("failed", error=error)})

    assert kind == caught.value.kind


def test_an_event_that_is_an_error_has_a_kind():
    with pytest.raises(ProviderUnavailableError, match=r"rate_limited: .*slow"):
        responses({"type": "error", "code": "rate_limit_exceeded", "message": "slow"})


NO_TOOLS = {
    "vllm": '"auto" tool choice requires --enable-auto-tool-choice to be set',
    "llama.cpp": "tools param requires --jinja flag",
    "ollama": "registry.ollama.ai/library/gemma:2b does not support tools",
    "openrouter": "No endpoints found that support tool use.",
}
WRITTEN = '<tool_call>{"name": "get_weather", "arguments": {"city": "Paris"}}</tool_call>'


@pytest.fixture
async def asker():
    contract = Chat()
    contract.parameters = {"dialect": "chat"}
    async with RecordedServer() as server:
        ask = contract.asker(server.base_url)
        ask.server = server
        yield ask
        await ask.model.close()


# 000-058: a model without tools calls them in its text.
@pytest.mark.parametrize("words", NO_TOOLS.values(), ids=NO_TOOLS)
async def test_a_server_without_tools_gets_them_in_the_instructions(asker, words):
    asker.server.answers.append(error(400, {"error": {"message": words}}))
    asker.server.answers.extend(
        [recorded_chat(chunk(content=WRITTEN), chunk("stop")), Chat.recorded["text"]]
    )

    reply = await asker(tools=(WEATHER,))
    again = await asker(tools=(WEATHER,))

    (made,) = reply.calls
    assert ("get_weather", {"city": "Paris"}) == (made.name, made.arguments)
    assert (("tools",), "tool_use", ()) == (reply.lacking, reply.stop_reason, reply.content)
    assert (("tools",), "end_turn") == (again.lacking, again.stop_reason)
    assert ["tools" in body for body in asker.server.requests] == [True, False, False]
    assert "get_weather" in asker.server.requests[1]["messages"][0]["content"]
    assert asker.told("text") == TEXT


@pytest.mark.parametrize("protocol", ["native", "prompt"])
async def test_a_protocol_that_was_chosen_stays(asker, protocol):
    asker.server.answers.append(error(400, {"error": {"message": NO_TOOLS["vllm"]}}))

    with pytest.raises(ProviderRefusedError, match="invalid_request"):
        await asker(tools=(WEATHER,), parameters={"dialect": "chat", "tool_protocol": protocol})

    assert ["tools" in body for body in asker.server.requests] == [protocol == "native"]


NO_IMAGES = {
    "vllm": "/models/qwen3-32b is not a multimodal model",
    "llama.cpp": "image input is not supported - hint: you may need to provide the mmproj",
    "openrouter": "No endpoints found that support image input",
    "deepseek": "messages[1]: unknown variant `image_url`, expected `text` at line 1",
}


# For the switch of a model in the middle of a session, too.
@pytest.mark.parametrize("words", NO_IMAGES.values(), ids=NO_IMAGES)
async def test_a_model_without_images_gets_a_text_for_each(asker, words):
    asker.server.answers.append(error(400, {"error": {"message": words}}))
    asker.server.answers.append(error(400, {"error": {"message": NO_TOOLS["vllm"]}}))
    asker.server.answers.append(Chat.recorded["text"])
    image = ImageBlock(media_type="image/png", data=PIXEL)

    reply = await asker(UserMessage(text="see", attachments=(image,)), tools=(WEATHER,))

    assert ("tools", "images") == reply.lacking
    sent = [PIXEL in json.dumps(body) for body in asker.server.requests]
    assert [True, False, False] == sent
