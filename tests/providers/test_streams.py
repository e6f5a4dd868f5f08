"""Streams are read as the vendors' own clients read them; the bodies are in `streams/`."""

import json
from pathlib import Path

import openai
import pytest

from cueline.actors.model_port import Delta
from cueline.events.message import TextBlock, ThinkingBlock, Usage
from cueline.providers.account import Account
from cueline.providers.event_stream import DONE, json_events, json_lines
from cueline.providers.gemini.connection import StreamedReply as GeminiReply
from cueline.providers.http import HttpClient
from cueline.providers.ollama.connection import OllamaClient
from cueline.providers.ollama.connection import StreamedReply as OllamaReply
from cueline.providers.openai.chat import ChatReply
from cueline.providers.openai.responses import ResponsesReply
from cueline.providers.openai.servers import USUAL
from cueline.providers.patience import Patience
from cueline.testing.model_example import HELLO
from cueline.testing.model_server import Recorded, RecordedServer
from tests.providers.streaming import block, ended, started

BODIES = {path.stem: path.read_bytes() for path in Path(__file__).parent.glob("streams/*.sse")}
CHAT = sorted(BODIES.keys() - {"responses_without_output_index"})
TEXTS = {
    "line_separators": "line\u2028sep \u0085 next \x1c end",
    "event_of_several_lines": "multi",
    "content_is_a_list": "listy",
    "half_surrogates": "a\U0001f600b",
    "usage_as_texts": "hi",
    "done_without_finish_reason": "hi",
}
TWO_CALLS = [("pay", {"who": "ada", "amount": 1}), ("pay", {"who": "bob", "amount": 2})]
SEPARATED = "a\u2028b\u2029c\u0085d\x1ce\x0bf"


@pytest.fixture
async def server():
    async with RecordedServer() as server:
        yield server


@pytest.fixture
async def read(server):
    """Let a client of ours read a body."""
    clients = []

    async def read_body(body, reply, client=HttpClient):
        server.answers.append(Recorded(body))
        clients.append(client(Account(base_url=server.base_url)))
        return await clients[-1].stream("/", {}, Patience(total=5), reply)

    yield read_body
    for client in clients:
        await client.retire()


@pytest.fixture
async def sdk(server):
    async with openai.AsyncOpenAI(base_url=server.base_url, api_key="k", max_retries=0) as client:
        yield client


@pytest.fixture
async def sdk_chunks(server, sdk):
    """Return the chunks that the vendor's client reads in a body."""

    async def chunks_of(body):
        server.answers.append(Recorded(body))
        asked = {"model": "m", "messages": [{"role": "user", "content": "hi"}]}
        return [chunk async for chunk in await sdk.chat.completions.create(**asked, stream=True)]

    return chunks_of


def plain(account):
    return HttpClient(account, {})


async def chunked(*chunks):
    for chunk in chunks:
        yield chunk


async def values(reading, *chunks):
    return [value async for value in reading(chunked(*chunks))]


def paired(text):
    return text.encode("utf-16", "surrogatepass").decode("utf-16")


def said(content):
    return content if isinstance(content, str) else "".join(part["text"] for part in content or ())


@pytest.mark.parametrize("name", CHAT)
async def test_a_stream_is_read_as_by_the_vendors_client(read, sdk_chunks, name):
    shown = []

    reply = await read(BODIES[name], ChatReply(USUAL, shown.append), plain)

    deltas = [choice.delta for chunk in await sdk_chunks(BODIES[name]) for choice in chunk.choices]
    text = paired("".join(said(delta.content) for delta in deltas))
    asked = [call.function for delta in deltas for call in delta.tool_calls or ()]
    calls = [(each.name, json.loads(each.arguments)) for each in asked]
    assert TEXTS.get(name, "") == text == "".join(delta.text for delta in shown)
    assert (TWO_CALLS if name.startswith("two_calls") else []) == calls
    assert calls == [(call.name, call.arguments) for call in reply.calls]
    assert [text] * bool(text) == [paired(block.text) for block in reply.content]


async def test_usage_that_comes_as_text_counts(read):
    reply = await read(BODIES["usage_as_texts"], ChatReply(USUAL), plain)

    assert Usage(input=10, output=3) == reply.usage


# A reply without usage is recorded with its highest cost, marked as an estimate.
@pytest.mark.parametrize("amount", ['"ten"', "1e999", "[1]", "-1"])
async def test_a_reply_counts_though_its_usage_cannot_be_read(read, amount):
    body = BODIES["usage_as_texts"].replace(b'"10"', amount.encode())

    reply = await read(body, ChatReply(USUAL), plain)

    assert ((TextBlock(text="hi"),), Usage()) == (reply.content, reply.usage)


async def test_a_response_without_places_is_read_as_by_the_vendors_client(read, server, sdk):
    body, shown = BODIES["responses_without_output_index"], []

    reply = await read(body, ResponsesReply(shown.append, asked="m"), plain)

    server.answers.append(Recorded(body))
    events = [event async for event in await sdk.responses.create(model="m", input="", stream=True)]
    text = "".join(event.delta for event in events if event.type == "response.output_text.delta")
    assert "Hello" == text == "".join(delta.text for delta in shown)
    assert ((TextBlock(text=text),), Usage(input=10, output=1)) == (reply.content, reply.usage)


# llama.cpp names a call by its `call_id` alone.
async def test_items_without_places_keep_their_order(read):
    call = {"type": "function_call", "call_id": "fc_1", "name": "go", "arguments": ""}
    pieces = [
        {"type": "response.output_item.added", "item": {"id": "msg_1", "type": "message"}},
        {"type": "response.output_text.delta", "item_id": "msg_1", "delta": "So"},
        {"type": "response.output_item.added", "item": call},
        {"type": "response.function_call_arguments.delta", "item_id": "fc_1", "delta": '{"n":'},
        {"type": "response.function_call_arguments.delta", "item_id": "fc_1", "delta": "1}"},
        {"type": "response.completed", "response": {"status": "completed"}},
    ]
    body = "".join(f"data: {json.dumps(piece)}\n\n" for piece in pieces)

    reply = await read(body.encode(), ResponsesReply(asked="m"), plain)

    (made,) = reply.calls
    assert ((TextBlock(text="So"),), {"n": 1}) == (reply.content, made.arguments)


async def test_thoughts_in_a_list_are_thoughts(read, sdk_chunks):
    thought = {"type": "thinking", "thinking": [{"type": "text", "text": "hm"}]}
    body = BODIES["content_is_a_list"].replace(
        b'[{"type": "text"', f'[{json.dumps(thought)}, {{"type": "text"'.encode()
    )
    shown = []

    reply = await read(body, ChatReply(USUAL, shown.append), plain)

    thoughts = ThinkingBlock(text="hm", provider="openai")
    assert (thoughts, TextBlock(text="listy")) == reply.content
    assert [Delta("thinking", "hm"), Delta("text", "listy")] == shown
    assert thought == (await sdk_chunks(body))[0].choices[0].delta.content[0]


async def test_a_call_that_comes_twice_is_made_once(read):
    body = BODIES["two_calls_one_index_one_id"].replace(b"bob", b"ada").replace(b": 2}", b": 1}")

    reply = await read(body, ChatReply(USUAL), plain)

    assert TWO_CALLS[:1] == [(call.name, call.arguments) for call in reply.calls]


async def test_another_name_begins_another_call(read):
    body = BODIES["two_calls_one_index_no_id"].replace(b'"pay"', b'"ask"', 1)
    body = body.replace(b'{\\"who\\": \\"ada\\", \\"amount\\": 1}', b"")

    reply = await read(body, ChatReply(USUAL), plain)

    assert [("ask", {}), TWO_CALLS[1]] == [(call.name, call.arguments) for call in reply.calls]


async def test_gemini_is_read_by_the_same_lines(read):
    parts = [{"text": SEPARATED}]
    told = {"candidates": [{"content": {"parts": parts}, "finishReason": "STOP"}]}
    body = f"data: {json.dumps(told, ensure_ascii=False)}\r\n\r\n".encode()

    reply = await read(body, GeminiReply(), plain)

    assert (TextBlock(text=SEPARATED),) == reply.content


async def test_a_reply_of_gemini_counts_though_its_usage_cannot_be_read(read):
    told = {"candidates": [{"content": {"parts": [{"text": "hi"}]}, "finishReason": "STOP"}]}
    body = f"data: {json.dumps({**told, 'usageMetadata': {'promptTokenCount': 'x'}})}\n\n"

    reply = await read(body.encode(), GeminiReply(), plain)

    assert ((TextBlock(text="hi"),), Usage()) == (reply.content, reply.usage)


async def test_anthropics_client_reads_the_same_lines(vendor, claude_at, request_for):
    pieces = [{"type": "text_delta", "text": text} for text in (f"{SEPARATED}\ud83d", "\ude00")]
    said = [started(input_tokens=1), *block(0, {"type": "text", "text": ""}, *pieces)]
    told = [*said, *ended("end_turn", output_tokens=1)]
    lines = [
        f"event: {e['type']}\r\ndata: {json.dumps(e, ensure_ascii=False)}\r\n\r\n" for e in told
    ]
    stream = "".join(lines).replace("\ud83d", r"\ud83d").replace("\ude00", r"\ude00")
    vendor.will_stream(stream.encode())
    request = request_for(messages=(HELLO,), provider="anthropic", model="claude-opus-4-6")
    shown = []

    await claude_at(vendor.url).reply(request, shown.append)

    assert f"{SEPARATED}\U0001f600" == "".join(delta.text for delta in shown)


async def test_ollamas_lines_end_with_lf_alone(read):
    told = json.dumps({"message": {"content": SEPARATED}, "done": True}, ensure_ascii=False)
    body = told.replace(', "done"', ',\r"done"').encode()

    reply = await read(body, OllamaReply(), OllamaClient)

    assert (TextBlock(text=SEPARATED),) == reply.content


@pytest.mark.parametrize("end", ["\n", "\r", "\r\n"], ids=["LF", "CR", "CRLF"])
@pytest.mark.parametrize("size", [1, 2, 3, 7, 1000])
async def test_an_event_is_the_same_however_its_bytes_are_cut(end, size):
    lines = ["\ufeff: a comment", "event: x", "data: {", "id: 1", 'data:"n":', "data:  1}", ""]
    body = end.join([*lines, "data:", "", "data: 2", "", "data: [DONE]", "", "data: 3"]).encode()
    chunks = [body[at : at + size] for at in range(0, len(body), size)]

    assert [{"n": 1}, 2, DONE] == await values(json_events, *chunks)


async def test_an_event_comes_as_soon_as_it_is_whole():
    async def chunks():
        yield b"data: 1\r\r"
        raise TimeoutError

    assert 1 == await anext(json_events(chunks()))


async def test_the_last_event_and_line_need_no_end():
    assert [[1], [2]] == [await values(json_events, b"data: 1"), await values(json_lines, b"2")]


async def test_an_object_without_events_is_a_reply():
    assert [{"a": 1}] == await values(json_events, b'{"a": 1}\n')
