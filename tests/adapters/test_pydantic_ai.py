"""A pydantic-ai agent runs as an agent of cueline."""

import signal
import subprocess
import sys
from functools import partial
from pathlib import Path

import openai
import pydantic_ai
import pytest
from pydantic_ai import exceptions
from pydantic_ai.capabilities import Thinking
from pydantic_ai.models.function import DeltaThinkingPart, DeltaToolCall, FunctionModel
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.models.test import TestModel as EchoModel
from pydantic_ai.providers.openai import OpenAIProvider

import cueline
from cueline.actors.model_port import ModelRequest
from cueline.adapters.pydantic_ai import from_pydantic_ai
from cueline.adapters.pydantic_ai_model import PydanticAIModel, _history
from cueline.errors import ConfigError, ProviderRefusedError, ProviderUnavailableError
from cueline.events.message import (
    AssistantMessage,
    OpaqueBlock,
    ThinkingBlock,
    ToolCall,
    ToolMessage,
    Usage,
    UserMessage,
    canonical_json,
)
from cueline.providers.registry import known_providers
from cueline.testing.crash import Outside
from cueline.testing.fakes import JournalingExecutor
from cueline.testing.model_server import Recorded, RecordedServer
from cueline.testing.wait import await_until
from cueline.tools.recorded_tool import load_recorded
from cueline.tools.tool import ToolContext
from tests.adapters import clerk, shop
from tests.crash.undisturbed import Undisturbed
from tests.providers.test_openai_contract import PIECES
from tests.providers.test_openai_contract import TestOpenAIChat as Chat

TARGET = f"{Path(shop.__file__)}:agent"
DECLARED = {"price": "read_only"}
translated = partial(from_pydantic_ai, TARGET, name="shop", declared=DECLARED)


def here(**parts):
    """Return the target of a pydantic-ai agent that is made of *parts* in this module."""
    made = pydantic_ai.Agent(**{"model": EchoModel(), **parts})
    globals()["given"] = made
    return f"{__name__}:given", made


# The agent that comes of it.


def test_an_agent_of_pydantic_ai_becomes_one_of_cueline():
    spec = translated().spec()
    price, pay, picture = spec.tools

    assert ("pydantic_ai", TARGET) == (spec.provider, spec.model)
    assert spec.instructions.startswith("You sell fruit.\n\nBe brief.\n\nYour last reply is JSON")
    assert {"temperature": 0.5} == spec.parameters
    assert ["total"] == spec.output["required"]
    assert ["read_only", "nothing", "nothing"] == [each.declared for each in spec.tools]
    assert ("Look up a price.", True, 300) == (
        price.description,
        price.in_loop,
        price.timeout_seconds,
    )
    assert "how many of it" == price.parameters["properties"]["copies"]["description"]
    assert (False, 30, True) == (pay.in_loop, pay.timeout_seconds, picture.sensitive)


def test_the_provider_is_an_installed_one():
    assert "pydantic_ai" in known_providers()


def test_the_adapter_is_imported_without_pydantic_ai():
    said = "import sys, cueline.adapters.pydantic_ai; print('pydantic_ai' in sys.modules)"

    done = subprocess.run([sys.executable, "-c", said], check=True, capture_output=True, text=True)

    assert "False\n" == done.stdout


def with_prepare(made):
    made.tool_plain(prepare=lambda _, tool: tool)(lookup)


def with_order(made):
    made.tool_plain(sequential=True)(lookup)


def lookup(word: str) -> str:
    return word


@pytest.mark.parametrize(
    ("parts", "change", "said"),
    [
        ({}, with_prepare, "its tool `lookup`: `prepare` changes it"),
        ({}, with_order, "its tool `lookup`: it is sequential"),
        ({"model": None}, id, "its model is None"),
        ({"capabilities": [Thinking()]}, id, "its capability Thinking"),
        ({"model_settings": lambda _: {}}, id, "its model settings are a function"),
    ],
)
def test_what_cannot_be_translated_is_named(parts, change, said):
    target, made = here(**parts)
    change(made)

    with pytest.raises(ConfigError, match=said):
        from_pydantic_ai(target, name="shop")


@pytest.mark.parametrize(
    ("target", "declared", "said"),
    [
        (TARGET, {"prise": "read_only"}, "it has no tool 'prise'.* price"),
        (TARGET, {"price": "reconcile"}, "price is 'reconcile'; it can be nothing"),
        ("no_such_module:agent", {}, "the agent cannot be loaded: .*no_such_module"),
        (f"{shop.__file__}:PAID", {}, "it is a str, not a pydantic-ai Agent"),
    ],
)
def test_a_wrong_name_is_named(target, declared, said):
    with pytest.raises(ConfigError, match=said):
        from_pydantic_ai(target, name="shop", declared=declared)


# What its model is asked.


def asked(target, *messages, **fields):
    agent = from_pydantic_ai(target, name="shop", **fields).spec()
    told = messages or [canonical_json(UserMessage(text="Sell"))]
    return ModelRequest("session-x/y", "1.m", 1, 1, agent, told)


async def test_a_reply_keeps_thoughts_calls_and_usage_and_what_only_its_vendor_reads():
    reply = await PydanticAIModel().reply(asked(TARGET))

    thought, whole = reply.content
    assert ThinkingBlock(text="Prices first.", provider="pydantic_ai") == thought
    assert isinstance(whole, OpaqueBlock)
    assert Usage(input=60, output=7, cache_read=40) == reply.usage
    assert ("tool_use", "clerk") == (reply.stop_reason, reply.model)

    told = {"role": "assistant", "content": reply.content, "calls": reply.calls}
    (response,) = _history(asked(TARGET).agent, [canonical_json(told)])[:1]
    thinking, first, second = response.parts
    assert ("Prices first.", "t1", "s1") == (thinking.content, thinking.id, thinking.signature)
    assert {"mark": "m"} == first.provider_details
    assert ({"item": "fig", "copies": 2}, "price") == (second.args, second.tool_name)


async def test_the_settings_and_tools_of_cuelines_agent_are_sent():
    seen = []

    async def see(_messages, info):
        seen.append(info)
        return pydantic_ai.ModelResponse(parts=[pydantic_ai.TextPart("Well.")])

    target, made = here(model=FunctionModel(see), model_settings={"max_tokens": 9000, "seed": 3})
    made.tool_plain(lookup)

    reply = await PydanticAIModel().reply(asked(target))

    assert ("end_turn", "Well.") == (reply.stop_reason, reply.content[0].text)
    assert {"max_tokens": 8192, "seed": 3} == seen[0].model_settings
    assert ["lookup"] == [tool.name for tool in seen[0].function_tools]


async def thinks_and_says(_messages, _info):
    yield {0: DeltaThinkingPart(content="Hm")}
    yield {0: DeltaThinkingPart(content=".")}
    yield "It "
    yield "rains."
    yield {1: DeltaToolCall(name="lookup", json_args='{"word": ', tool_call_id="c1")}
    yield {1: DeltaToolCall(json_args='"rain"}')}


async def test_a_reply_comes_in_pieces():
    target, _ = here(model=FunctionModel(stream_function=thinks_and_says))
    shown = []

    reply = await PydanticAIModel().reply(asked(target), shown.append)

    said = [("thinking", "Hm"), ("thinking", "."), ("text", "It "), ("text", "rains.")]
    assert said == [(delta.kind, delta.text) for delta in shown]
    assert ["Hm.", "It rains."] == [b.text for b in reply.content if b.kind != "opaque"]
    assert [("lookup", {"word": "rain"})] == [(c.name, c.arguments) for c in reply.calls]


@pytest.fixture
async def recorded_model():
    """A model of a vendor's own client, at a server with the vendor's protocol."""
    async with RecordedServer() as server:
        client = openai.AsyncOpenAI(base_url=server.base_url, api_key="k", max_retries=0)
        model = OpenAIChatModel("m", provider=OpenAIProvider(openai_client=client))
        yield server, here(model=model)[0]
        await client.close()


async def test_a_vendors_own_client_streams(recorded_model):
    server, target = recorded_model
    server.answers.append(Chat.recorded["text"])
    shown = []

    reply = await PydanticAIModel().reply(asked(target), shown.append)

    assert list(PIECES) == [delta.text for delta in shown]
    assert ("".join(PIECES), Usage(input=9, output=7)) == (reply.content[-1].text, reply.usage)
    assert server.requests[0]["stream"]


async def test_a_vendors_own_client_that_cannot_read_its_stream_is_asked_again(recorded_model):
    server, target = recorded_model
    server.answers.append(Recorded(Chat.recorded["text"].body.replace(b'"often "', b"often")))

    with pytest.raises(ProviderUnavailableError, match="unavailable: "):
        await PydanticAIModel().reply(asked(target))


async def test_a_model_that_cannot_stream_is_asked_for_the_whole():
    shown = []

    reply = await PydanticAIModel().reply(asked(TARGET), shown.append)

    assert [("thinking", "Prices first.")] == [(delta.kind, delta.text) for delta in shown]
    assert 2 == len(reply.calls)


async def test_a_stream_that_breaks_off_is_tried_again():
    async def breaks(_messages, _info):
        yield "It "
        raise OSError("gone")

    target, _ = here(model=FunctionModel(stream_function=breaks))

    with pytest.raises(ProviderUnavailableError, match=r"network: the stream broke off .*gone"):
        await PydanticAIModel().reply(asked(target))


async def test_malformed_arguments_go_back_as_the_model_wrote_them():
    call = ToolCall(id="c1", name="price", malformed='{"item": pear')
    told = [UserMessage(text="Sell"), AssistantMessage(calls=(call,))]
    told += [ToolMessage(call="c1", text="no", failed=True)]

    history = _history(asked(TARGET).agent, list(map(canonical_json, told)))

    assert '{"item": pear' == history[1].parts[0].args


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (exceptions.ModelHTTPError(429, "m"), "rate_limited"),
        (exceptions.ModelHTTPError(401, "m"), "auth"),
        (exceptions.ModelAPIError("m", "no route"), "unavailable"),
        (exceptions.UnexpectedModelBehavior("what?"), "malformed_reply"),
        (exceptions.ContentFilterError("no"), "content_filtered"),
        (exceptions.UserError("wrong"), "invalid_request"),
    ],
)
async def test_an_error_of_the_model_has_a_kind(error, kind):
    async def fail(_messages, _info):
        raise error

    target, _ = here(model=FunctionModel(fail))

    with pytest.raises((ProviderUnavailableError, ProviderRefusedError)) as raised:
        await PydanticAIModel().reply(asked(target))
    assert kind == raised.value.kind


# A whole session, with tools in workers.


async def test_it_runs(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    async with cueline.open_runtime("log.db", on="inline") as runtime:
        session = await runtime.start(translated(), "Sell")
        result = await session.result()
        facts = [each.event async for each in session.events()]

    returned = [fact for fact in facts if fact.type == "ToolReturned"]
    assert {"total": 9} == result.output
    assert {"1.0", "1.1", "2.0"} == {fact.effect for fact in returned}
    assert "9\n" == (tmp_path / shop.PAID).read_text()


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


# I5
@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize(
    ("point", "ran", "in_doubt"),
    [
        ("in price", "price price pay", 0),
        ("model 1", "price pay", 0),
        ("before pay", "price", 1),
        ("after pay", "price pay", 1),
        ("model 2", "price pay", 0),
    ],
)
async def test_another_process_goes_on_after_sigkill(point, ran, in_doubt, popen):
    clerk.STOP.write_text(point)
    killed = popen([sys.executable, clerk.__file__])
    await await_until(lambda: clerk.STOPPED.exists() or killed.poll() is not None)
    killed.kill()
    assert -signal.SIGKILL == killed.wait()

    async with cueline.open_runtime("log.db", on="inline") as runtime:
        session = await runtime.resume("sale")
        result = await session.result()
        types = [fact.type async for _, fact in session.events()]

    assert ("completed", "Sold.") == (result.status, result.text)
    assert ran == clerk.RAN.read_text().strip()
    assert in_doubt == types.count("ToolInDoubt")


# A kill at every point, and a cut after every event.


async def act(order):
    given = {**order.arguments}
    told = {key: getattr(order, key) for key in ("session", "effect", "attempt", "key")}
    done = load_recorded(order.tool).run(given, ToolContext(**told))
    return str(await done)


def outside(said=None):
    place = Outside.new(PydanticAIModel(), JournalingExecutor({"price": act, "pay": paid}))
    return place, translated().spec()


async def paid(order):
    return f"paid {order.arguments['usd']}"  # its thread has no place on a clock that stands


WHOLE = Undisturbed(outside)


def assert_no_undeclared_call_was_repeated(place):
    payments = [start for start in place.executor.starts if start.tool == "pay"]
    assert 1 == len(payments)


def test_there_are_points_enough():
    assert WHOLE.events >= 15
    assert len(WHOLE.points) >= 30


# I5
@WHOLE.at_every_point
async def test_a_killed_session_goes_on_and_repeats_no_undeclared_call(point):
    place = await WHOLE.killed(point)

    await WHOLE.check_told(place)
    assert_no_undeclared_call_was_repeated(place)


@WHOLE.after_every_event
async def test_a_session_that_was_cut_goes_on_and_repeats_no_undeclared_call(position):
    place = await WHOLE.cut(position, None)

    await WHOLE.check_told(place)
    assert_no_undeclared_call_was_repeated(place)
