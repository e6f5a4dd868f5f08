"""How neutral messages become a request to Anthropic."""

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
from cueline.providers.anthropic.provider import PROVIDER
from cueline.providers.anthropic.request import conversation, request_body
from cueline.providers.patience import Patience, check_parameters, patience_of

MARK = {"type": "ephemeral"}


def turns(*messages):
    return [
        (turn["role"], [tuple(block.values()) for block in turn["content"]])
        for turn in conversation(message.model_dump_json().encode() for message in messages)
    ]


def test_results_and_words_of_one_turn_are_one_message_results_first():
    calls = (ToolCall(id="a", name="look"), ToolCall(id="b", name="go", arguments={"to": "x"}))

    told = turns(
        UserMessage(text="start"),
        AssistantMessage(calls=calls),
        ToolMessage(call="a", text="a wall"),
        UserMessage(text="careful"),
        ToolMessage(call="b", text="no", failed=True),
        UserMessage(text="stop"),
    )

    assert [
        ("user", [("text", "start")]),
        ("assistant", [("tool_use", "a", "look", {}), ("tool_use", "b", "go", {"to": "x"})]),
        (
            "user",
            [
                ("tool_result", "a", "a wall", False),
                ("tool_result", "b", "no", True),
                ("text", "careful"),
                ("text", "stop"),
            ],
        ),
    ] == told


def test_only_anthropics_own_thoughts_are_sent_to_it():
    theirs = OpaqueBlock(provider="other", data={"secret": 1})
    unsigned = ThinkingBlock(text="by a scripted model")
    content = (theirs, unsigned, TextBlock(text=" "), TextBlock(text="Yes."))

    assert [("assistant", [("text", "Yes.")])] == turns(AssistantMessage(content=content))


def test_an_answer_of_nothing_is_left_out():
    told = turns(UserMessage(text="a"), AssistantMessage(), UserMessage(text="b"))

    assert [("user", [("text", "a"), ("text", "b")])] == told


def test_a_blank_message_is_sent_as_words():
    assert [("user", [("text", "(empty)")])] == turns(UserMessage(text=" \n"))


def test_malformed_arguments_go_back_as_the_vendor_advises():
    call = ToolCall(id="a", name="go", malformed='{"to')

    sent = turns(AssistantMessage(calls=(call,)))[0]

    assert ("assistant", [("tool_use", "a", "go", {"INVALID_JSON": '{"to'})]) == sent


def test_calls_of_one_id_go_back_by_ids_of_their_own():
    """I13: the API refuses a conversation that has one id twice, and so every later one."""
    first, second = ToolCall(id="call_0", name="look"), ToolCall(id="call_0", name="go")
    results = (ToolMessage(call="call_0", text="a wall"), ToolMessage(call="call_0", text="gone"))
    again = (AssistantMessage(calls=(first,)), ToolMessage(call="call_0", text="a door"))

    told = turns(AssistantMessage(calls=(first, second)), *results, *again)

    assert [
        [("tool_use", "call_0", "look", {}), ("tool_use", "call_0-1", "go", {})],
        [("tool_result", "call_0", "a wall", False), ("tool_result", "call_0-1", "gone", False)],
        [("tool_use", "call_0-2", "look", {})],
        [("tool_result", "call_0-2", "a door", False)],
    ] == [blocks for _, blocks in told]


@pytest.mark.parametrize(
    ("call", "sent"),
    [
        (ToolCall(id="functions.go:0", name="go"), ("functions_go_0", "go")),
        (ToolCall(id="", name="browser.tabs open"), ("call", "browser_tabs_open")),
        (ToolCall(id="a", name="ls -la " * 40), ("a", ("ls_-la_" * 40)[:64])),
        (ToolCall(id="a", name=""), ("a", "_")),
    ],
)
def test_what_the_api_would_not_take_back_of_a_call_is_written_otherwise(call, sent):
    (_, ((_, *asked, _),)), (_, ((_, answered, *_),)) = turns(
        AssistantMessage(calls=(call,)), ToolMessage(call=call.id, text="no such tool", failed=True)
    )

    assert (list(sent), sent[0]) == (asked, answered)


THOUGHT = ThinkingBlock(text="Hm.", signature="c2ln")


@pytest.mark.parametrize("content", [(THOUGHT,), (THOUGHT, TextBlock(text="\n\n"))])
def test_an_answer_that_ends_in_thoughts_goes_back_with_an_end(content):
    """I13: the API refuses an answer whose last block is a thought."""
    told = turns(AssistantMessage(content=content))

    assert [("assistant", [("thinking", "Hm.", "c2ln"), ("text", "(empty)")])] == told


def test_thoughts_before_a_call_are_their_own_end():
    told = turns(AssistantMessage(content=(THOUGHT,), calls=(ToolCall(id="a", name="go"),)))

    assert ("assistant", [("thinking", "Hm.", "c2ln"), ("tool_use", "a", "go", {})]) == told[0]


TOOL = ToolSpec(
    name="go", description="Goes.", parameters={"type": "object"}, target="m:go", digest="d"
)


def marked(body):
    blocks = [*body.get("tools", []), *body.get("system", [])]
    blocks += [block for message in body["messages"] for block in message["content"]]
    return [block.get("text") or block.get("name") for block in blocks if "cache_control" in block]


def encoded(*messages):
    return [message.model_dump_json().encode() for message in messages]


TALK = [
    UserMessage(text="one"),
    AssistantMessage(content=(TextBlock(text="uno"),)),
    UserMessage(text="two"),
    AssistantMessage(content=(TextBlock(text="due"),)),
    UserMessage(text="three"),
]


def test_the_cache_keeps_the_instructions_and_the_last_two_turns(agent):
    body = request_body(agent(instructions="Be brief.", tools=(TOOL,)), encoded(*TALK))

    assert ["Be brief.", "two", "three"] == marked(body)


def test_the_cache_keeps_the_tools_where_there_are_no_instructions(agent):
    assert ["go", "one"] == marked(request_body(agent(tools=(TOOL,)), encoded(*TALK[:1])))


def test_a_request_begins_with_all_that_the_one_before_had(agent):
    spec = agent(instructions="Be brief.", tools=(TOOL,))

    before, after = (
        unmarked(request_body(spec, encoded(*talk))["messages"]) for talk in (TALK[:3], TALK)
    )

    assert before == after[: len(before)]


def unmarked(messages):
    return [
        [{k: v for k, v in block.items() if k != "cache_control"} for block in message["content"]]
        for message in messages
    ]


def test_a_request_of_nothing_but_words_is_small(agent):
    body = request_body(agent(model="claude"), encoded(TALK[0]))

    content = [{"type": "text", "text": "one", "cache_control": MARK}]
    messages = [{"role": "user", "content": content}]
    assert {"model": "claude", "max_tokens": 8192, "messages": messages} == body


def test_patience_is_a_parameter(agent):
    hasty = agent(parameters={"timeout_seconds": 5, "chunk_timeout_seconds": 0.5})

    assert (Patience(total=5, chunk=0.5), Patience(total=600, chunk=60)) == (
        patience_of(hasty),
        patience_of(agent()),
    )


def test_patience_may_say_its_unit(agent):
    patient = agent(parameters={"timeout_seconds": "1h", "chunk_timeout_seconds": "5m"})

    check_parameters(patient)

    assert Patience(total=3600, chunk=300) == patience_of(patient)


MISPLACED = {
    "max_tokens": 5,
    "system": "Be brief.",
    "tools": [],
    "stream": False,
    "timeout_seconds": 0,
    "chunk_timeout_seconds": "soon",
}


@pytest.mark.parametrize(("name", "value"), MISPLACED.items())
def test_a_parameter_that_is_not_passed_on_is_named(agent, name, value):
    with pytest.raises(ConfigError, match=rf"^parameters\.{name}: is "):
        check_parameters(agent(parameters={name: value}))


def test_a_server_that_is_not_the_vendors_gets_plain_instructions_without_marks(request_for):
    request = request_for(messages=[UserMessage(text="hi")], instructions="Be kind.")

    body = request_body(request.agent, request.messages, is_vendor=False)

    assert "Be kind." == body["system"]
    assert "cache_control" not in str(body)


def test_a_parameter_says_whether_a_prompt_is_marked_for_the_cache(agent):
    marking = agent(instructions="Be kind.", parameters={"prompt_cache": True})
    plain = agent(instructions="Be kind.", parameters={"prompt_cache": False})

    body = request_body(marking, encoded(*TALK), is_vendor=False)

    assert ["Be kind.", "two", "three"] == marked(body)
    assert "prompt_cache" not in body
    assert "cache_control" not in str(request_body(plain, encoded(*TALK)))


def test_the_mark_for_the_cache_is_yes_or_no(agent):
    with pytest.raises(ConfigError, match=r"parameters\.prompt_cache: is 'on', neither true nor"):
        PROVIDER.check(agent(parameters={"prompt_cache": "on"}))


PICTURE = ImageBlock(media_type="image/png", data="aW1n")
PAGE = FileBlock(media_type="application/pdf", name="a.pdf", data="cGRm")
NOTE = FileBlock(media_type="text/markdown", name="a.md", data="T3BlbiBhdCBlaWdodC4=")
SHEET = FileBlock(media_type="application/zip", name="a.zip", data="emlw")
SENT = [
    {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "aW1n"}},
    {
        "type": "document",
        "source": {"type": "base64", "media_type": "application/pdf", "data": "cGRm"},
        "title": "a.pdf",
    },
    {
        "type": "document",
        "source": {"type": "text", "media_type": "text/plain", "data": "Open at eight."},
        "title": "a.md",
    },
    {
        "type": "text",
        "text": "(a.zip, application/zip, left out: this model takes no such files)",
    },
    {"type": "text", "text": "see"},
]


def test_attachments_of_a_message_are_blocks_before_its_text():
    attached = (PICTURE, PAGE, NOTE, SHEET)

    ((_, told),) = turns(UserMessage(text="see", attachments=attached))

    assert [tuple(block.values()) for block in SENT] == told


def test_attachments_of_a_result_are_in_the_result():
    call = AssistantMessage(calls=(ToolCall(id="a", name="look"),))
    result = ToolMessage(call="a", text="see", attachments=(PICTURE, PAGE, NOTE, SHEET))

    (_, (_, ((*_, content, failed),))) = turns(call, result)

    assert (SENT, False) == (content, failed)
