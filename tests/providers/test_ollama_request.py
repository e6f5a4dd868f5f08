"""How neutral messages become a request to Ollama."""

import json

import pytest

from cueline.errors import ConfigError
from cueline.events.agent import ToolSpec
from cueline.events.message import (
    AssistantMessage,
    ImageBlock,
    TextBlock,
    ThinkingBlock,
    ToolCall,
    ToolMessage,
    UserMessage,
)
from cueline.providers.account import NOWHERE
from cueline.providers.factory import account_for, check_agent
from cueline.providers.ollama.request import ALL, Abilities, request_body
from cueline.providers.registry import provider_named

WEATHER = ToolSpec(
    name="get_weather",
    description="Tells the weather.",
    parameters={"type": "object", "properties": {"city": {"type": "string"}}},
    target="weather:get_weather",
    digest="d",
)
HELLO = UserMessage(text="Weather?")
PARIS = ToolCall(id="call_1_0", name="get_weather", arguments={"city": "Paris"})
IMAGE = ImageBlock(media_type="image/png", data="aGk=")


@pytest.fixture
def llama(agent):
    return lambda **fields: agent(**{"provider": "ollama", "model": "llama3.2", **fields})


@pytest.fixture
def body(llama):
    def of(*messages, able=ALL, **fields):
        encoded = [message.model_dump_json().encode() for message in messages or (HELLO,)]
        return request_body(llama(**fields), encoded, able)

    return of


def test_a_request_has_instructions_messages_and_the_limit(body):
    assert {
        "model": "llama3.2",
        "stream": True,
        "truncate": False,
        "shift": False,
        "options": {"num_predict": 8192},
        "messages": [
            {"role": "system", "content": "Be brief."},
            {"role": "user", "content": "Weather?"},
        ],
    } == body(instructions="Be brief.")


def test_a_conversation_with_tools_is_sent_as_it_was(body):
    thought = ThinkingBlock(text="Paris.", provider="ollama")
    said = AssistantMessage(content=(thought, TextBlock(text="Let me see.")), calls=(PARIS,))
    sent = body(HELLO, said, ToolMessage(call="call_1_0", text="Rain."), tools=(WEATHER,))

    call = {"name": "get_weather", "arguments": {"city": "Paris"}}
    assert [
        {
            "role": "assistant",
            "content": "Let me see.",
            "thinking": "Paris.",
            "tool_calls": [{"id": "call_1_0", "function": call}],
        },
        {
            "role": "tool",
            "content": "Rain.",
            "tool_name": "get_weather",
            "tool_call_id": "call_1_0",
        },
    ] == sent["messages"][1:]
    assert "get_weather" == sent["tools"][0]["function"]["name"]


def test_the_thoughts_of_another_provider_stay_with_it(body):
    thought = ThinkingBlock(text="theirs", signature="s", provider="anthropic")

    assert "theirs" not in json.dumps(body(HELLO, AssistantMessage(content=(thought,)), HELLO))


# 000-030, 000-058
def test_a_model_without_tools_is_told_of_them_in_its_instructions(llama):
    said = AssistantMessage(calls=(PARIS,))
    talk = (HELLO, said, ToolMessage(call="call_1_0", text="Rain."))
    asking = llama(tools=(WEATHER,), parameters={"tool_protocol": "prompt"})
    encoded = [message.model_dump_json().encode() for message in talk]
    sent = provider_named("ollama").request(asking, encoded, NOWHERE)

    system, _, asked, result = sent["messages"]
    assert "tools" not in sent
    assert "tool_protocol" not in json.dumps(sent)
    assert '"name": "get_weather"' in system["content"]
    assert asked["content"].startswith("<tool_call>")
    assert ("user", True) == (result["role"], "Rain." in result["content"])


def test_images_go_to_models_that_see(body):
    seen = UserMessage(text="What is this?", attachments=(IMAGE,))

    assert ["aGk="] == body(seen)["messages"][0]["images"]
    blind = body(seen, able=Abilities(images=False))["messages"][0]
    assert "images" not in blind
    assert "left out" in blind["content"]


def test_parameters_are_options_of_the_model_or_fields_of_the_request(body):
    parameters = {"temperature": 0, "num_ctx": 32768, "options": {"seed": 1}, "think": True}
    sent = body(parameters={**parameters, "keep_alive": "1h", "timeout_seconds": 9})

    options = {"temperature": 0, "num_ctx": 32768, "seed": 1, "num_predict": 8192}
    assert options == sent["options"]
    assert (True, "1h") == (sent["think"], sent["keep_alive"])
    assert "timeout_seconds" not in json.dumps(sent)


def test_a_model_that_does_not_think_is_not_asked_to(body):
    assert "think" not in body(parameters={"think": True}, able=Abilities(thinking=False))


@pytest.mark.parametrize(
    ("parameters", "reason"),
    [
        ({"num_predict": 9}, r"parameters\.num_predict: .*use limits\.max_output_tokens"),
        ({"tool_protocol": "xml"}, r"parameters\.tool_protocol: is 'xml', neither 'native' nor"),
    ],
)
def test_a_parameter_that_cannot_be_is_found_before_the_start(llama, parameters, reason):
    with pytest.raises(ConfigError, match=reason):
        check_agent(llama(parameters=parameters), {})


# 000-009, 000-028, 000-060
def test_an_agent_may_leave_the_model_to_the_environment():
    ollama = provider_named("ollama")

    assert ("OLLAMA_MODEL", True) == (ollama.model_variable, ollama.is_free)
    assert ollama.default_model


# 000-029, 000-057, 000-059, 002-026
@pytest.mark.parametrize(
    ("host", "url"),
    [
        ("", "http://localhost:11434"),
        ("127.0.0.1:11434", "http://127.0.0.1:11434"),
        ("0.0.0.0:11434", "http://127.0.0.1:11434"),
        ("0.0.0.0", "http://127.0.0.1:11434"),
        (":8000", "http://127.0.0.1:8000"),
        ("[::]:8000", "http://[::1]:8000"),
        ("gpu", "http://gpu:11434"),
        ("http://gpu", "http://gpu"),
        ("https://ollama.example/api-7/", "https://ollama.example/api-7"),
    ],
)
def test_the_host_may_lack_a_scheme_and_a_port(llama, host, url):
    assert url == account_for(llama(), {"OLLAMA_HOST": host}).base_url


def test_a_host_that_is_none_is_named(llama):
    with pytest.raises(ConfigError, match=r"base_url: .*my computer.* is not"):
        check_agent(llama(), {"OLLAMA_HOST": "my computer"})
