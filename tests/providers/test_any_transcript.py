"""No vendor refuses a transcript, whoever made it (I13): for a switch in mid-session, too."""

import json
from itertools import pairwise, product

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from cueline.events.agent import AgentSpec
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
    canonical_json,
)
from cueline.providers.account import Account
from cueline.providers.registry import provider_named
from cueline.testing.model_example import HELLO, PARIS, ROME, WEATHER
from cueline.testing.model_server import RecordedServer
from cueline.testing.model_tool_calls import BROKEN
from tests.drawn import drawn
from tests.providers.test_anthropic_contract import TestAnthropic as Anthropic
from tests.providers.test_gemini_contract import TestGemini as Gemini
from tests.providers.test_ollama_contract import TestOllama as Ollama
from tests.providers.test_openai_contract import TestOpenAIChat as Chat
from tests.providers.test_openai_contract import TestOpenAIResponses as Responses
from tests.providers.vendor_rules import (
    check_anthropic,
    check_chat,
    check_gemini,
    check_mistral,
    check_ollama,
    check_parsed_chat,
    check_responses,
)

FORMS = {
    "anthropic": ("anthropic", {}, check_anthropic),
    "chat": ("openai", {"dialect": "chat"}, check_chat),
    "deepseek": ("openai", {"dialect": "chat", "server": "api.deepseek.com"}, check_parsed_chat),
    "gemini": ("gemini", {}, check_gemini),
    "mistral": ("openai", {"dialect": "chat", "server": "api.mistral.ai"}, check_mistral),
    "ollama": ("ollama", {}, check_ollama),
    "responses": ("openai", {"dialect": "responses"}, check_responses),
}
MAKERS = {"anthropic": Anthropic, "gemini": Gemini, "ollama": Ollama, "chat": Chat}
MAKERS |= {"responses": Responses}

each_form = pytest.mark.parametrize("form", FORMS)


def request(form, messages, model="model-1"):
    """Return the request to a vendor, and check it by the vendor's rules."""
    name, parameters, check = FORMS[form]
    provider = provider_named(name)
    url = provider.endpoint.url
    agent = AgentSpec(name="a", provider=name, model=model, parameters=parameters, tools=(WEATHER,))
    body = provider.request(agent, list(map(canonical_json, messages)), Account(base_url=url))
    check(body)
    return body


@each_form
@pytest.mark.parametrize("messages", BROKEN.values(), ids=BROKEN)
def test_a_broken_transcript_is_sent_as_a_whole_one(form, messages):
    request(form, messages)


TEXTS = st.sampled_from(["", " \n", "Go on.", "größer"])
IDS = st.sampled_from(["", "a", "b", "functions.x:0", "x" * 90])
VENDORS = st.sampled_from(["", "anthropic", "gemini", "ollama", "openai"])
ITEMS = [
    {"type": "reasoning", "summary": [], "encrypted_content": "e"},
    {"type": "function_call"},
    {"type": "phase", "phase": "commentary"},
    {"type": "reasoning_details", "reasoning_details": [{"id": 1}]},
]
OPAQUE = st.one_of(
    st.builds(OpaqueBlock, provider=st.just("openai"), data=st.sampled_from(ITEMS)),
    st.builds(
        OpaqueBlock,
        provider=st.just("anthropic"),
        data=st.sampled_from([{"type": "redacted_thinking", "data": "x"}, {"type": "tool_use"}]),
    ),
    st.builds(
        OpaqueBlock,
        provider=st.just("gemini"),
        model=st.sampled_from(["", "model-1", "model-2"]),
        data=st.just({"thoughtSignature": "c2ln"}),
    ),
)
ATTACHMENTS = st.lists(
    st.sampled_from(
        [
            ImageBlock(media_type="image/png", data="aW1n"),
            FileBlock(media_type="application/pdf", name="a.pdf", data="cGRm"),
            FileBlock(media_type="text/plain", name="a.txt", data="T3Blbg=="),
            FileBlock(media_type="application/zip", name="a.zip", data="emlw"),
        ]
    ),
    max_size=2,
).map(tuple)
BLOCKS = st.one_of(
    st.builds(TextBlock, text=TEXTS),
    st.builds(ThinkingBlock, text=TEXTS, signature=st.sampled_from(["", "c2ln"]), provider=VENDORS),
    OPAQUE,
)
NAMES = st.sampled_from(["get_weather", "get weather!", "", "9 lives", "n" * 90])
CALLS = st.builds(
    ToolCall,
    id=IDS,
    name=NAMES,
    arguments=st.sampled_from([{}, {"city": "Paris"}]),
    malformed=st.sampled_from([None, '{"ci']),
    opaque=st.one_of(st.none(), OPAQUE.filter(lambda block: block.provider == "gemini")),
)
MESSAGES = st.one_of(
    st.builds(UserMessage, text=TEXTS, attachments=ATTACHMENTS),
    st.builds(ToolMessage, call=IDS, text=TEXTS, failed=st.booleans(), attachments=ATTACHMENTS),
    st.builds(
        AssistantMessage,
        content=st.lists(BLOCKS, max_size=4).map(tuple),
        calls=st.lists(CALLS, max_size=3).map(tuple),
    ),
)


@each_form
@given(talk=st.lists(MESSAGES, max_size=10))
@settings(deadline=None, suppress_health_check=list(HealthCheck), max_examples=drawn(150))
def test_no_transcript_is_refused(form, talk):
    request(form, [HELLO, *talk, UserMessage(text="And now?")])


MALFORMED = '{"city": Paris'
BACK = {
    "anthropic": [("INVALID_JSON", MALFORMED)],
    "chat": [("arguments", MALFORMED)],
    "deepseek": [("arguments", json.dumps({"INVALID_JSON": MALFORMED}, separators=(",", ":")))],
    "gemini": [("INVALID_JSON", MALFORMED)],
    "mistral": [("arguments", json.dumps({"INVALID_JSON": MALFORMED}, separators=(",", ":")))],
    "ollama": [("INVALID_JSON", MALFORMED)],
    "responses": [("arguments", MALFORMED)],
}


# A model that does not see what it wrote makes the same mistake again.
@each_form
def test_malformed_arguments_go_back_as_the_model_wrote_them(form):
    call = ToolCall(id="a", name="get_weather", malformed=MALFORMED, problem="no JSON")
    talk = [HELLO, AssistantMessage(calls=(call,)), ToolMessage(call="a", text="no", failed=True)]

    found = []
    json.loads(
        json.dumps(request(form, talk)),
        object_pairs_hook=lambda pairs: found.extend(p for p in pairs if "city" in str(p)),
    )

    assert BACK[form][0] in [(name, value) for name, value in found if isinstance(value, str)]


async def made_by(maker, recorder):
    """Return a reply with thoughts, in the maker's own form."""
    contract = MAKERS[maker]()
    recorder.answers.append(contract.recorded["thinking"])
    ask = contract.asker(recorder.base_url)
    reply = await ask(HELLO)
    await ask.model.close()
    calls = reply.calls or (PARIS.model_copy(update={"id": "a:1"}), ROME)
    return AssistantMessage(content=reply.content, calls=calls)


@pytest.fixture
async def recorder():
    async with RecordedServer() as server:
        yield server


# 002-021, 002-023: with calls in flight, too.
@pytest.mark.parametrize(("first", "then"), list(product(MAKERS, FORMS)))
async def test_any_model_goes_on_where_any_other_was(recorder, first, then):
    reply = await made_by(first, recorder)
    results = [ToolMessage(call=call.id, text="21") for call in reversed(reply.calls)]
    talk = [HELLO, reply, *results, UserMessage(text="And now?")]

    told = str(request(then, talk, model="model-2"))

    signature = MAKERS[first].signature
    back = FORMS[first][0] == FORMS[then][0] == "anthropic"
    assert back or not signature or signature not in told or then == "deepseek"
    assert "21" in told


@pytest.mark.parametrize(("first", "second"), list(pairwise([*FORMS, "anthropic"])))
def test_a_session_may_go_to_and_fro(first, second):
    talk = [HELLO]
    for name in (FORMS[first][0], FORMS[second][0]) * 3:
        thought = ThinkingBlock(text="hm", signature="c2ln", provider=name)
        call = ToolCall(id="call_0", name="get_weather")
        talk += [AssistantMessage(content=(thought,), calls=(call,))]
        talk += [ToolMessage(call="call_0", text="21")]
        request(first, talk)
        request(second, talk)
