"""A server that drops the tools of a request without a word."""

import json

import pytest

from cueline.errors import ProviderRefusedError
from cueline.events.message import UserMessage
from cueline.providers.factory import account_for
from cueline.providers.openai.provider import PROVIDER
from cueline.testing.model_example import WEATHER
from tests.providers.test_openai_contract import asked, chat, chunk

WRITTEN = '<tool_call>{"name": "get_weather", "arguments": {"city": "Paris"}}</tool_call>'
TEXT = chat(chunk(content=WRITTEN), chunk("stop")).body
PLAIN = chat(chunk(content="Well."), chunk("stop")).body
CALL = chat(chunk(tool_calls=asked('{"city": "Rome"}')), chunk("tool_calls")).body
PROPS = "/props?model=m"
MANY = tuple(WEATHER.model_copy(update={"name": f"tool_{n}"}) for n in range(20))


@pytest.fixture
async def ask(vendor, agent, request_for):
    fields = {"provider": "openai", "model": "m", "base_url": f"{vendor.url}/v1"}
    model = PROVIDER.make(account_for(agent(**fields), {}), None)

    async def ask_model(*tools, **more):
        said = {"messages": (UserMessage(text="hi"),), "tools": tools or (WEATHER,)}
        return await model.reply(request_for(**fields, **said, **more), shown.append)

    shown = ask_model.shown = []
    yield ask_model
    await model.close()


def will_stream(vendor, *bodies):
    for body in bodies:
        vendor.will_stream(body, server="llama.cpp")


def will_tell(vendor, **caps):
    props = {"chat_template": "{{ messages }}", **caps}
    vendor.will_fail(200, json.dumps(props).encode())


async def test_a_llama_cpp_whose_template_has_no_tools_gets_them_in_the_instructions(vendor, ask):
    will_stream(vendor, PLAIN)
    will_tell(vendor, chat_template_caps={"supports_tools": False})
    will_stream(vendor, TEXT, TEXT)

    reply, again = await ask(), await ask()

    assert ["get_weather"] == [call.name for call in reply.calls]
    assert ("tools",) == reply.lacking == again.lacking
    chats = ["/v1/chat/completions"] * 2
    assert [chats[0], PROPS, *chats] == vendor.paths
    assert "Well." not in "".join(delta.text for delta in ask.shown)


@pytest.mark.parametrize(
    "caps", [{"chat_template_caps": {"supports_tools": True}}, {"chat_template_caps": {}}, {}]
)
async def test_any_other_llama_cpp_is_asked_once(vendor, ask, caps):
    will_stream(vendor, CALL)
    will_tell(vendor, **caps)
    will_stream(vendor, CALL)

    replies = [await ask(), await ask()]

    assert [(), ()] == [reply.lacking for reply in replies]
    assert [{"city": "Rome"}] * 2 == [reply.calls[0].arguments for reply in replies]
    assert 1 == vendor.paths.count(PROPS)


async def test_a_llama_cpp_that_does_not_tell_gets_the_benefit(vendor, ask):
    will_stream(vendor, CALL)
    vendor.will_fail(404, b"{}")

    assert () == (await ask()).lacking


async def test_tools_that_somebody_insists_on_are_refused(vendor, ask):
    will_stream(vendor, PLAIN)
    will_tell(vendor, chat_template_caps={"supports_tools": False})

    with pytest.raises(ProviderRefusedError, match=r"template of m .* does not support tools"):
        await ask(parameters={"tool_protocol": "native"})


async def test_another_server_is_not_asked(vendor, ask):
    vendor.will_stream(CALL)

    assert () == (await ask()).lacking
    assert ["/v1/chat/completions"] == vendor.paths


# 9 tokens cannot hold the descriptions of 20 tools.
async def test_a_model_that_cannot_have_seen_its_tools_lacks_them(vendor, ask):
    vendor.will_stream(PLAIN)
    vendor.will_stream(TEXT)

    first, second = await ask(*MANY), await ask(WEATHER, *MANY)

    assert (("tools",), ("tools",)) == (first.lacking, second.lacking)
    assert ["get_weather"] == [call.name for call in second.calls]


async def test_a_model_that_calls_a_tool_has_seen_it(vendor, ask):
    vendor.will_stream(CALL)

    assert () == (await ask(*MANY)).lacking


@pytest.mark.parametrize("usage", [{"prompt_tokens": 0}, {"prompt_tokens": 400}])
async def test_who_may_have_seen_its_tools_lacks_none(vendor, ask, usage):
    vendor.will_stream(chat(chunk(content="Well."), chunk("stop"), **usage).body)

    assert () == (await ask(*MANY)).lacking
