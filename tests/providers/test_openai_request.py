"""How neutral messages become requests to OpenAI, or to a server with its protocol."""

import base64
import json

import pytest

from cueline.errors import ConfigError
from cueline.events.agent import ToolSpec
from cueline.events.message import (
    AssistantMessage,
    FileBlock,
    ImageBlock,
    OpaqueBlock,
    TextBlock,
    ThinkingBlock,
    ToolCall,
    ToolMessage,
    UserMessage,
)
from cueline.providers.account import Account
from cueline.providers.factory import check_agent
from cueline.providers.openai.provider import PROVIDER
from cueline.providers.openai.servers import SERVERS, server_of

VENDOR = Account(base_url="https://api.openai.com/v1")
GO = ToolSpec(
    name="go", description="Goes.", parameters={"type": "object"}, target="m:go", digest="d"
)
HI = UserMessage(text="hi")
CALL = ToolCall(id="c1", name="go", arguments={"to": "Zürich"})


def elsewhere(url="http://127.0.0.1:8000/v1"):
    return Account(base_url=url, is_vendor=False)


@pytest.fixture
def body(agent):
    def new(*messages, account=VENDOR, **fields):
        spec = agent(**{"provider": "openai", "model": "gpt-6.1-terra", **fields})
        encoded = [message.model_dump_json().encode() for message in messages or (HI,)]
        return PROVIDER.request(spec, encoded, account)

    return new


def ours(data, model="gpt-6.1-terra"):
    return OpaqueBlock(provider="openai", model=model, data=data)


THOUGHT = {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "gAAA"}


def test_the_vendor_gets_the_newer_dialect_and_stores_nothing(body):
    asked = body(instructions="Be kind.", tools=(GO,), parameters={"reasoning": {"effort": "low"}})

    assert {
        "model": "gpt-6.1-terra",
        "stream": True,
        "store": False,
        "max_output_tokens": 8192,
        "include": ["reasoning.encrypted_content"],
        "reasoning": {"effort": "low"},
        "tools": [
            {
                "type": "function",
                "name": "go",
                "description": "Goes.",
                "parameters": {"type": "object"},
                "strict": False,
            }
        ],
        "instructions": "Be kind.",
        "input": [{"role": "user", "content": [{"type": "input_text", "text": "hi"}]}],
    } == asked


def test_other_servers_get_the_older_one(body):
    asked = body(account=elsewhere(), instructions="Be kind.", tools=(GO,))

    tool = {"name": "go", "description": "Goes.", "parameters": {"type": "object"}}
    assert {
        "model": "gpt-6.1-terra",
        "stream": True,
        "max_tokens": 8192,
        "stream_options": {"include_usage": True},
        "tools": [{"type": "function", "function": tool}],
        "messages": [
            {"role": "system", "content": "Be kind."},
            {"role": "user", "content": "hi"},
        ],
    } == asked


def test_a_parameter_chooses_the_dialect(body):
    assert "input" in body(account=elsewhere(), parameters={"dialect": "responses"})
    asked = body(parameters={"dialect": "chat"})
    assert ("messages" in asked, "dialect" in asked) == (True, False)
    assert 8192 == asked["max_completion_tokens"]


@pytest.mark.parametrize("name", ["gpt-4o", "gpt-4.1-mini", "ft:gpt-4o:us::1", "gpt-5-chat-latest"])
def test_models_that_do_not_think_are_not_asked_for_thoughts(body, name):
    assert "include" not in body(model=name)


@pytest.mark.parametrize(
    ("parameters", "named"),
    [
        ({"dialect": "soap"}, r"parameters\.dialect: is 'soap', none of responses, chat"),
        ({"server": "example.org"}, r"parameters\.server: is 'example\.org', none of api\."),
        ({"max_completion_tokens": 5}, r"parameters\.max_completion_tokens: .*max_output_tokens"),
        ({"store": True}, r"parameters\.store: "),
    ],
)
def test_a_parameter_that_cannot_be_used_is_named(agent, parameters, named):
    with pytest.raises(ConfigError, match=named):
        PROVIDER.check(agent(provider="openai", parameters=parameters))


@pytest.mark.parametrize(
    ("url", "parameters", "host"),
    [
        ("https://openrouter.ai/api/v1", {}, "openrouter.ai"),
        ("https://team.openai.azure.com/openai/v1", {}, "openai.azure.com"),
        ("http://127.0.0.1:4000", {"server": "api.deepseek.com"}, "api.deepseek.com"),
        ("https://notopenrouter.ai/v1", {}, None),
        ("http://localhost:11434/v1", {}, None),
    ],
)
def test_a_server_is_known_by_its_host_or_by_a_parameter(agent, url, parameters, host):
    known = server_of(agent(parameters=parameters), elsewhere(url))

    assert known == SERVERS.get(host, type(known)())


# 000-005, 002-021, D4: the whole conversation goes back.
def test_a_conversation_goes_back_in_items_with_thoughts_in_their_places(body):
    second = ToolCall(id="c2", name="go")
    content = (
        ours(THOUGHT),
        ours({"type": "function_call"}),
        ours({"type": "phase", "phase": "commentary"}),
        TextBlock(text="On we go."),
        ThinkingBlock(text="a summary", provider="openai"),
    )
    reply = AssistantMessage(content=content, calls=(CALL, second))
    results = (ToolMessage(call="c1", text="there"), ToolMessage(call="c2", text="", failed=True))

    said = body(HI, reply, *results)["input"][1:]

    text = {"type": "output_text", "text": "On we go.", "annotations": []}
    assert [
        THOUGHT,
        {"type": "function_call", "call_id": "c1", "name": "go", "arguments": said[1]["arguments"]},
        {"type": "message", "role": "assistant", "content": [text], "phase": "commentary"},
        {"type": "function_call", "call_id": "c2", "name": "go", "arguments": "{}"},
        {"type": "function_call_output", "call_id": "c1", "output": "there"},
        {"type": "function_call_output", "call_id": "c2", "output": ""},
    ] == said
    assert {"to": "Zürich"} == json.loads(said[1]["arguments"])


def test_a_thought_that_nothing_follows_is_left_out(body):
    assert 2 == len(body(HI, AssistantMessage(content=(ours(THOUGHT),)), HI)["input"])


def test_another_model_does_not_get_the_thoughts(body):
    content = (ours(THOUGHT, model="gpt-6-luna"), TextBlock(text="Yes."))

    types = [each.get("type") for each in body(HI, AssistantMessage(content=content))["input"]]

    assert [None, "message"] == types


def test_the_older_dialect_gets_no_items_of_the_newer(body):
    content = (ours(THOUGHT), ours({"type": "function_call"}), TextBlock(text="Yes."))

    (_, said, _) = body(HI, AssistantMessage(content=content, calls=(CALL,)), account=elsewhere())[
        "messages"
    ]

    function = {"name": "go", "arguments": said["tool_calls"][0]["function"]["arguments"]}
    call = {"id": "c1", "type": "function", "function": function}
    assert {"role": "assistant", "content": "Yes.", "tool_calls": [call]} == said


@pytest.mark.parametrize(
    ("host", "field"),
    [
        ("api.deepseek.com", {"reasoning_content": "hm"}),
        ("openrouter.ai", {"reasoning_details": [{"id": 1}]}),
        ("api.mistral.ai", {}),
    ],
)
def test_thoughts_go_back_to_servers_that_take_them(body, host, field):
    content = (
        ThinkingBlock(text="hm", provider="openai"),
        ours({"type": "reasoning_details", "reasoning_details": [{"id": 1}]}),
        TextBlock(text="Yes."),
    )

    asked = body(HI, AssistantMessage(content=content), account=elsewhere(f"https://{host}/v1"))

    assert {"role": "assistant", "content": "Yes.", **field} == asked["messages"][1]
    assert ("stream_options" in asked) == (host != "api.mistral.ai")


def test_a_reply_of_thoughts_alone_goes_back_as_words(body):
    thought = ThinkingBlock(text="hm", provider="openai")

    asked = body(HI, AssistantMessage(content=(thought,)), account=elsewhere())

    assert {"role": "assistant", "content": "(empty)"} == asked["messages"][1]


PICTURE = ImageBlock(media_type="image/png", data="aW1n")
PAGE = FileBlock(media_type="application/pdf", name="a.pdf", data="cGRm")
NOTE = FileBlock(
    media_type="text/plain", name="a.txt", data=base64.b64encode(b"Open at eight.").decode()
)


def test_attachments_go_as_parts_of_the_newer_dialect(body):
    message = UserMessage(text="see", attachments=(PICTURE, PAGE, NOTE))

    (said,) = body(message)["input"]

    assert [
        {"type": "input_image", "image_url": "data:image/png;base64,aW1n"},
        {
            "type": "input_file",
            "filename": "a.pdf",
            "file_data": "data:application/pdf;base64,cGRm",
        },
        {"type": "input_text", "text": "a.txt:\nOpen at eight."},
        {"type": "input_text", "text": "see"},
    ] == said["content"]


def test_documents_go_only_to_servers_that_take_them(body):
    message = UserMessage(text="see", attachments=(PICTURE, PAGE))
    image = {"type": "image_url", "image_url": {"url": "data:image/png;base64,aW1n"}}
    file = {"filename": "a.pdf", "file_data": "data:application/pdf;base64,cGRm"}

    router = body(message, account=elsewhere("https://openrouter.ai/api/v1"))["messages"]
    local = body(message, account=elsewhere())["messages"]

    text = {"type": "text", "text": "see"}
    assert [image, {"type": "file", "file": file}, text] == router[0]["content"]
    assert image == local[0]["content"][0]
    assert "(a.pdf, application/pdf, left out: " in local[0]["content"][1]["text"]


def test_images_of_results_follow_the_last_result(body):
    calls = AssistantMessage(calls=(CALL, ToolCall(id="c2", name="go")))
    results = (
        ToolMessage(call="c1", text="a map", attachments=(PICTURE,)),
        ToolMessage(call="c2", text=" "),
    )

    asked = body(HI, calls, *results, UserMessage(text="and?"), account=elsewhere())["messages"]

    assert ["user", "assistant", "tool", "tool", "user", "user"] == [m["role"] for m in asked]
    assert ["a map", "(empty)"] == [m["content"] for m in asked[2:4]]
    assert "image_url" == asked[4]["content"][0]["type"]


def test_an_answer_may_be_bound_to_a_schema(body):
    schema = {"type": "object", "properties": {"city": {"type": "string"}}}

    shape = body(output=schema)["text"]["format"]

    assert ("json_schema", schema, False) == (shape["type"], shape["schema"], shape["strict"])


def test_a_model_that_ends_is_known_by_each_of_its_names():
    assert ["2026-12-11", "2026-12-11", None] == [
        PROVIDER.ends_on(name) for name in ("gpt-5", "gpt-5-2025-08-07", "gpt-6.1-terra")
    ]


def test_several_answers_cannot_be_asked_for(agent):
    with pytest.raises(ConfigError, match=r"parameters\.n: .* cueline reads one answer"):
        check_agent(agent(provider="openai", parameters={"n": 2}), {"OPENAI_API_KEY": "k"})
