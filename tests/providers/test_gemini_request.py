"""How neutral messages become a request to Gemini."""

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
from cueline.providers.account import NOWHERE
from cueline.providers.factory import check_agent
from cueline.providers.gemini.request import UNSIGNED, count_body, model_path, request_body
from cueline.providers.registry import provider_named

MODEL = "gemini-3.8-flash"
WEATHER = ToolSpec(
    name="get_weather",
    description="Tells the weather.",
    parameters={"type": "object", "properties": {"city": {"$ref": "#/$defs/City"}}, "$defs": {}},
    target="weather:get_weather",
    digest="d",
)
HELLO = UserMessage(text="Weather?")
IMAGE = ImageBlock(media_type="image/png", data="aGk=")


def signed(signature, model=MODEL):
    return OpaqueBlock(provider="gemini", model=model, data={"thoughtSignature": signature})


def call(call_id, city, opaque=None):
    return ToolCall(id=call_id, name="get_weather", arguments={"city": city}, opaque=opaque)


@pytest.fixture
def gemini(agent):
    return lambda **fields: agent(**{"provider": "gemini", "model": MODEL, **fields})


@pytest.fixture
def body(gemini):
    def of(*messages, **fields):
        encoded = [message.model_dump_json().encode() for message in messages or (HELLO,)]
        return request_body(gemini(**fields), encoded)

    return of


def test_a_request_has_instructions_contents_and_the_limit(body):
    assert {
        "generationConfig": {"maxOutputTokens": 8192},
        "systemInstruction": {"parts": [{"text": "Be brief."}]},
        "contents": [{"role": "user", "parts": [{"text": "Weather?"}]}],
    } == body(instructions="Be brief.")


def test_the_schema_of_a_tool_is_sent_as_it_is(body):
    (declared,) = body(tools=(WEATHER,))["tools"][0]["functionDeclarations"]

    assert WEATHER.parameters == declared["parametersJsonSchema"]
    assert ("get_weather", "Tells the weather.") == (declared["name"], declared["description"])


def test_signatures_go_back_to_the_parts_that_had_them(body):
    said = AssistantMessage(
        content=(
            ThinkingBlock(text="Hm.", provider="gemini"),
            TextBlock(text="Let me see."),
            signed("c2ln"),
        ),
        calls=(call("a", "Paris", signed("c2lnMg==")), call("b", "Rome")),
    )
    results = [ToolMessage(call="a", text="Rain."), ToolMessage(call="b", text="no", failed=True)]
    _, answer, told = body(HELLO, said, *results, HELLO)["contents"]

    paris = {"id": "a", "name": "get_weather", "args": {"city": "Paris"}}
    rome = {"id": "b", "name": "get_weather", "args": {"city": "Rome"}}
    assert [
        {"text": "Let me see.", "thoughtSignature": "c2ln"},
        {"functionCall": paris, "thoughtSignature": "c2lnMg=="},
        {"functionCall": rome},
    ] == answer["parts"]
    assert [
        {"id": "a", "name": "get_weather", "response": {"output": "Rain."}},
        {"id": "b", "name": "get_weather", "response": {"error": "no"}},
    ] == [part["functionResponse"] for part in told["parts"][:2]]
    assert {"text": "Weather?"} == told["parts"][2]


# Gemini 3 refuses a call without a signature, but for this one.
@pytest.mark.parametrize("opaque", [None, signed("theirs", model="gemini-2.5-pro")])
def test_a_call_of_another_model_is_marked_as_unsigned(body, opaque):
    said = AssistantMessage(calls=(call("a", "Paris", opaque), call("b", "Rome")))
    answer = body(HELLO, said)["contents"][1]

    assert [UNSIGNED, None] == [part.get("thoughtSignature") for part in answer["parts"]]


def test_other_opaque_parts_go_back_unchanged(body):
    code = {"executableCode": {"language": "PYTHON", "code": "1"}, "thoughtSignature": "s"}
    ran = OpaqueBlock(provider="gemini", model=MODEL, data=code)
    thought = ThinkingBlock(text="Hm.", signature="c2ln", provider="gemini")

    sent = body(HELLO, AssistantMessage(content=(thought, signed("s"), ran)))["contents"][1]

    assert [
        {"text": "Hm.", "thought": True, "thoughtSignature": "c2ln"},
        {"text": "", "thoughtSignature": "s"},
        code,
    ] == sent["parts"]


def test_the_thoughts_of_another_provider_stay_with_it(body):
    thought = ThinkingBlock(text="theirs", signature="s", provider="anthropic")
    sent = body(HELLO, AssistantMessage(content=(thought,)), HELLO)

    assert "theirs" not in json.dumps(sent)
    assert [{"role": "user", "parts": [{"text": "Weather?"}] * 2}] == sent["contents"]


def test_results_come_before_their_images(body):
    said = AssistantMessage(calls=(call("a", "Paris"), call("b", "Rome")))
    results = [ToolMessage(call=name, text="map", attachments=(IMAGE,)) for name in "ab"]
    told = body(HELLO, said, *results)["contents"][2]["parts"]

    kinds = ["functionResponse", "functionResponse", "inlineData", "inlineData"]
    assert kinds == [next(iter(part)) for part in told]


def test_attachments_are_sent_or_named(body):
    text = base64.b64encode(b"Open at eight.").decode()
    attached = (
        IMAGE,
        ImageBlock(media_type="image/gif", data="aGk="),
        FileBlock(media_type="application/pdf", name="a.pdf", data="aGk="),
        FileBlock(media_type="text/plain", name="a.txt", data=text),
        FileBlock(media_type="application/zip", name="a.zip", data="aGk="),
    )
    parts = body(UserMessage(text=" ", attachments=attached))["contents"][0]["parts"]

    assert {"inlineData": {"mimeType": "image/png", "data": "aGk="}} == parts[0]
    assert "image/gif left out" in parts[1]["text"]
    assert "application/pdf" == parts[2]["inlineData"]["mimeType"]
    assert "a.txt:\nOpen at eight." == parts[3]["text"]
    assert "a.zip, application/zip, left out" in parts[4]["text"]
    assert 5 == len(parts)


def test_a_name_that_begins_with_a_digit_gets_a_letter(body):
    said = AssistantMessage(calls=(ToolCall(id="a", name="2nd"),))
    _, answer, told = body(HELLO, said, ToolMessage(call="a", text=""))["contents"]

    assert "_2nd" == answer["parts"][0]["functionCall"]["name"]
    assert "_2nd" == told["parts"][0]["functionResponse"]["name"]


def test_parameters_configure_the_generation_or_the_request(body):
    parameters = {
        "temperature": 0,
        "generationConfig": {"seed": 1},
        "safetySettings": [],
        "chunk_timeout_seconds": 9,
    }

    sent = body(parameters=parameters)

    assert {"temperature": 0, "seed": 1, "maxOutputTokens": 8192} == sent["generationConfig"]
    assert [] == sent["safetySettings"]
    assert "chunk_timeout_seconds" not in json.dumps(sent)


def test_tools_can_be_described_in_the_instructions(gemini):
    said = AssistantMessage(calls=(call("a", "Paris"),))
    talk = (HELLO, said, ToolMessage(call="a", text="Rain."))
    asking = gemini(tools=(WEATHER,), parameters={"tool_protocol": "prompt"})
    encoded = [message.model_dump_json().encode() for message in talk]
    sent = provider_named("gemini").request(asking, encoded, NOWHERE)

    assert "tools" not in sent
    assert "get_weather" in sent["systemInstruction"]["parts"][0]["text"]
    assert sent["contents"][1]["parts"][0]["text"].startswith("<tool_call>")


WRONG = ["candidateCount", "maxOutputTokens", "systemInstruction", "tools", "contents"]


@pytest.mark.parametrize("name", WRONG)
def test_a_parameter_that_cannot_be_is_found_before_the_start(gemini, name):
    with pytest.raises(ConfigError, match=rf"parameters\.{name}: is not set here"):
        check_agent(gemini(parameters={name: 1}), {"GEMINI_API_KEY": "k"})


@pytest.mark.parametrize(
    ("model", "path"),
    [
        ("gemini-3.8-flash", "/v1beta/models/gemini-3.8-flash"),
        ("models/gemini-3.8-flash", "/v1beta/models/gemini-3.8-flash"),
        ("tunedModels/mine", "/v1beta/tunedModels/mine"),
        ("a?b", "/v1beta/models/a%3Fb"),
    ],
)
def test_a_model_has_a_path(model, path):
    assert path == model_path(model)


def test_a_count_has_the_whole_prompt(gemini, body):
    counted = count_body(gemini(), body())

    assert {"model": f"models/{MODEL}", **body()} == counted["generateContentRequest"]
