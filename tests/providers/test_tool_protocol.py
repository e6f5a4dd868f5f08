"""Whether a model is asked with tools of its own or in its text."""

import pytest

from cueline.actors.model_port import Delta, ModelReply
from cueline.errors import ProviderRefusedError, ProviderUnavailableError
from cueline.events.message import TextBlock, ThinkingBlock, UserMessage
from cueline.providers.tool_protocol import ToolProtocol
from tests.providers.test_ollama_request import WEATHER

CALL = '<tool_call>{"name": "get_weather", "arguments": {"city": "Paris"}}</tool_call>'
THOUGHT = ThinkingBlock(text="Hm.", provider="ollama")
SAID = ModelReply(content=(THOUGHT, TextBlock(text=f"So: {CALL}")), stop_reason="end_turn")


class Server:
    """Answers in text; a request with tools it refuses, if it is given an error for that."""

    def __init__(self, error=None, reply=SAID):
        self.error, self.reply, self.asked = error, reply, []

    async def __call__(self, request, deltas):
        self.asked.append(request)
        if request.agent.tools and self.error is not None:
            raise self.error
        deltas(Delta("thinking", "Hm."))
        deltas(Delta("text", self.reply.content[-1].text))
        return self.reply


@pytest.fixture
def request_with(request_for):
    def new(**fields):
        return request_for(messages=(UserMessage(text="Weather?"),), tools=(WEATHER,), **fields)

    return new


# 000-030, 000-058
async def test_the_calls_of_a_prompted_model_are_as_any_others(request_with):
    server, came = Server(), []
    request = request_with(turn=3, parameters={"tool_protocol": "prompt"})

    reply = await ToolProtocol(server).reply(request, came.append)

    (call,) = reply.calls
    assert ("call_3_0", "get_weather", {"city": "Paris"}) == (call.id, call.name, call.arguments)
    assert ((THOUGHT, TextBlock(text="So:")), "tool_use") == (reply.content, reply.stop_reason)
    assert () == reply.lacking
    assert [Delta("thinking", "Hm."), Delta("text", "So: ")] == came
    assert () == server.asked[0].agent.tools


@pytest.mark.parametrize(
    "message",
    [
        "registry.ollama.ai/library/gemma:2b does not support tools",
        'No endpoints found that support tool use. Try disabling "get_weather".',
        '"auto" tool choice requires --enable-auto-tool-choice and --tool-call-parser to be set',
        "Function calling is not enabled for models/gemma-3-27b-it",
        "tools param requires --jinja flag",
    ],
)
@pytest.mark.parametrize("error", [ProviderRefusedError, ProviderUnavailableError])
async def test_a_server_that_takes_no_tools_is_asked_without_from_then_on(
    request_with, message, error
):
    server = Server(error("invalid_request", message))
    protocol = ToolProtocol(server)

    replies = [await protocol.reply(request_with(), lambda _: None) for _ in range(2)]

    assert [("tools",), ("tools",)] == [reply.lacking for reply in replies]
    assert [1, 0, 0] == [len(request.agent.tools) for request in server.asked]


async def test_another_model_of_the_server_may_have_tools(request_with):
    protocol = ToolProtocol(server := Server())
    protocol.learn("another")

    assert SAID == await protocol.reply(request_with(), lambda _: None)
    assert (WEATHER,) == server.asked[0].agent.tools


@pytest.mark.parametrize(
    ("parameters", "message"), [({"tool_protocol": "native"}, "does not support tools"), ({}, "no")]
)
async def test_any_other_error_is_one(request_with, parameters, message):
    server = Server(ProviderRefusedError("invalid_request", message))

    with pytest.raises(ProviderRefusedError):
        await ToolProtocol(server).reply(request_with(parameters=parameters), lambda _: None)

    assert 1 == len(server.asked)


async def test_a_reply_without_calls_is_left_as_it_is(request_with):
    reply = ModelReply(content=(TextBlock(text=" Rain. "),), stop_reason="end_turn")
    request = request_with(parameters={"tool_protocol": "prompt"})

    assert reply == await ToolProtocol(Server(reply=reply)).reply(request, lambda _: None)


async def test_a_call_that_was_cut_off_does_not_run(request_with):
    reply = ModelReply(content=(TextBlock(text=CALL[:30]),), stop_reason="max_tokens")
    request = request_with(parameters={"tool_protocol": "prompt"})

    reply = await ToolProtocol(Server(reply=reply)).reply(request, lambda _: None)

    assert "max_tokens" == reply.stop_reason
    assert "limits.max_output_tokens" in reply.calls[0].problem
