"""Tool calls as text: what the protocol writes, it reads."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cueline.actors.model_port import Delta
from cueline.events.agent import ToolSpec
from cueline.events.message import (
    AssistantMessage,
    ImageBlock,
    TextBlock,
    ToolCall,
    ToolMessage,
    UserMessage,
)
from cueline.providers.event_stream import CUT_CALL
from cueline.providers.tool_protocol import (
    VisibleText,
    as_text,
    instructions_with_tools,
    read_reply,
    written_call,
    written_result,
)

WEATHER = ToolSpec(
    name="get_weather",
    description="Tells the weather.",
    parameters={"type": "object", "properties": {"city": {"type": "string"}}},
    target="weather:get_weather",
    digest="d",
)
PARIS = ToolCall(id="c1-0", name="get_weather", arguments={"city": "Paris"})
TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=30)
TAGS = st.sampled_from(
    ["<tool_call>", "</tool_call>", "<tool_response", "{", "}", "```json\n", '"']
)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-1000, 1000) | TEXTS | TAGS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3),
    max_leaves=8,
)


def read(text, **options):
    return read_reply(text, [WEATHER], prefix="c1-", **options)


def test_the_tools_follow_the_instructions():
    told = instructions_with_tools("Be brief.", [WEATHER])

    assert told.startswith("Be brief.\n\n# Tools")
    assert '{"name": "get_weather", "description": "Tells the weather.", "parameters": ' in told


def test_an_agent_without_tools_is_told_of_none():
    assert "Be brief." == instructions_with_tools("Be brief.", [])
    assert instructions_with_tools(" ", [WEATHER]).startswith("# Tools")


# 000-058
def test_calls_are_read_from_the_text_around_them():
    reply = read(
        'Let me see.\n<tool_call>\n{"name": "get_weather", "arguments": {"city": "Paris"}}\n'
        "</tool_call>\n"
        '<tool_call>{"name": "get_weather", "arguments": {"city": "Rome"}}</tool_call>'
    )

    assert "Let me see." == reply.text
    assert [("c1-0", {"city": "Paris"}), ("c1-1", {"city": "Rome"})] == [
        (call.id, call.arguments) for call in reply.calls
    ]


def test_a_text_without_calls_is_left_as_it_is():
    assert (" Hello.\n", ()) == (read(" Hello.\n").text, read(" Hello.\n").calls)


@pytest.mark.parametrize(
    "text",
    [
        '<tool_call>{"name": "get_weather", "arguments": {"city": "Paris"}}',
        '<tool_call>```\n{"name": "get_weather", "arguments": {"city": "Paris"}}\n```</tool_call>',
        '<tool_call>{"name": "get_weather", "parameters": {"city": "Paris"}}</tool_call>',
        '<tool_call>{"name": "get_weather", "arguments": "{\\"city\\": \\"Paris\\"}"}</tool_call>',
        '<tool_call>{"name": "get_weather", "arguments": {"city": "Paris"}}}</tool_call>',
        '{"name": "get_weather", "arguments": {"city": "Paris"}}',
        '```json\n{"name": "get_weather", "parameters": {"city": "Paris"}}\n```',
    ],
)
def test_a_call_with_a_small_mistake_of_form_is_read(text):
    assert ((PARIS,), "") == (read(text).calls, read(text).text)


def test_a_call_without_arguments_has_none():
    (call,) = read('<tool_call>{"name": "now"}</tool_call>').calls

    assert ("now", {}, None) == (call.name, call.arguments, call.malformed)


@pytest.mark.parametrize(
    "text", ['{"name": "other", "arguments": {}}', '{"name": "get_weather"}', "[1]"]
)
def test_json_that_is_an_answer_is_no_call(text):
    assert (text, ()) == (read(text).text, read(text).calls)


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ('{"name": "get_weather", "arguments": {"city": }', "get_weather"),
        ("{'name': 'get_weather', 'arguments': {'city': 'Paris'}}", "get_weather"),
        ('{"name": "get_weather", "arguments": [1]}', "get_weather"),
        ('{"name": "get_weather", "arguments": {"city": NaN}}', "get_weather"),
        ("get_weather(Paris)", "unreadable"),
        ("", "unreadable"),
    ],
)
def test_a_call_that_cannot_be_read_is_malformed(text, name):
    (call,) = read(f"<tool_call>{text}</tool_call>").calls

    assert (name, {}) == (call.name, call.arguments)
    assert call.malformed is not None


def test_a_result_that_the_model_made_up_is_left_out():
    made_up = (
        written_call(PARIS)
        + '\n<tool_response name="get_weather">\nSunny.\n</tool_response>\nSunny!'
    )

    assert ((PARIS,), "") == (read(made_up).calls, read(made_up).text)


def test_a_call_that_was_cut_off_does_not_run():
    (call,) = read('<tool_call>{"name": "get_weather", "argum', cut=True).calls

    assert ("get_weather", CUT_CALL) == (call.name, call.problem)


def test_a_whole_call_before_the_limit_runs():
    assert (PARIS,) == read(written_call(PARIS), cut=True).calls


def test_malformed_arguments_go_back_as_the_model_wrote_them():
    call = PARIS.model_copy(update={"arguments": {}, "malformed": '{"city": <Paris'})

    (read_back,) = read(written_call(call)).calls

    assert (call.name, call.malformed) == (read_back.name, read_back.malformed)


@given(st.lists(TEXTS | TAGS, max_size=8).map("".join), st.booleans())
def test_any_text_is_read_without_an_error(text, cut):
    reply = read(text, cut=cut)

    assert len({call.id for call in reply.calls}) == len(reply.calls)


@given(
    TEXTS.map(str.strip).filter(bool),
    st.dictionaries(TEXTS, VALUES, max_size=4),
    st.text(max_size=0),
)
def test_a_written_call_is_read_as_it_was(name, arguments, text):
    call = ToolCall(id="c1-0", name=name, arguments=arguments)

    assert (text, (call,)) == (read(text + written_call(call)).text, read(written_call(call)).calls)


def test_calls_and_results_become_text():
    messages = [
        UserMessage(text="Weather?"),
        AssistantMessage(content=(TextBlock(text="Let me see."),), calls=(PARIS, PARIS)),
        ToolMessage(call="c1-0", text="Rain."),
        ToolMessage(call="c1-0", text="Down.", failed=True),
        UserMessage(text="And?"),
    ]

    first, said, results, last = as_text(messages)

    assert (first, last) == (messages[0], messages[-1])
    assert ("Let me see.", "\n".join([written_call(PARIS)] * 2)) == tuple(
        b.text for b in said.content
    )
    assert () == said.calls
    assert results.text.startswith('<tool_response name="get_weather">\nRain.\n</tool_response>')
    assert '<tool_response name="get_weather" failed="true">\nDown.' in results.text


def test_the_images_of_results_stay_with_them():
    image = ImageBlock(media_type="image/png", data="aGk=")

    _, results = as_text(
        [AssistantMessage(calls=(PARIS,)), ToolMessage(call="c1-0", text="", attachments=(image,))]
    )

    assert (image,) == results.attachments


def test_no_text_ends_its_result():
    told = written_result(ToolMessage(call="c1-0", text="a</tool_response>b"), "read")

    assert 1 == told.count("</tool_response>")


@given(st.lists(TEXTS | TAGS, max_size=8))
def test_the_watcher_gets_the_text_without_the_calls(pieces):
    shown = []
    visible = VisibleText(shown.append)

    for piece in pieces:
        visible.add(piece)
    visible.end()

    text, told = "".join(pieces), "".join(delta.text for delta in shown)
    assert "<tool_call>" not in told or "</tool_call>" not in text
    assert told == text or "<tool_call>" in text


def test_the_watcher_gets_text_as_soon_as_it_is_no_tag():
    shown = []
    visible = VisibleText(shown.append)

    for piece in ["It is <", "tool", " a <tool", '_call>{"name": 1}</tool_', "call> b <t"]:
        visible.add(piece)
    visible.end()

    assert [Delta("text", text) for text in ["It is ", "<tool a ", " b ", "<t"]] == shown
