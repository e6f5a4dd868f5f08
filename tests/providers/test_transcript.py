"""What is changed in a transcript before any vendor gets it (002-021, I13)."""

import base64

import pytest

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
from cueline.providers.transcript import LONGEST_ID, transcript

CALLS = AssistantMessage(calls=(ToolCall(id="a", name="look"), ToolCall(id="b", name="go")))
PICTURE = ImageBlock(media_type="image/png", data="aW1n")


def sent(*messages, **target):
    encoded = (message.model_dump_json().encode() for message in messages)
    return list(transcript(encoded, **{"provider": "p", "model": "m", **target}))


def test_results_follow_their_calls_in_order_and_then_what_people_said():
    careful, first, second = (
        UserMessage(text="careful"),
        ToolMessage(call="a", text="a wall"),
        ToolMessage(call="b", text="gone"),
    )

    assert [CALLS, first, second, careful] == sent(CALLS, second, careful, first)


def test_a_call_without_a_result_gets_a_failed_one():
    result, message = ToolMessage(call="b", text="gone"), UserMessage(text="and now?")

    missing = ToolMessage(call="a", text="(no result)", failed=True)
    assert [CALLS, missing, result, message] == sent(CALLS, result, message)


def test_a_result_without_a_call_is_left_out():
    late, unknown = ToolMessage(call="b", text="late"), ToolMessage(call="z", text="unknown")
    answer = AssistantMessage(content=(TextBlock(text="Done."),))

    assert answer == sent(CALLS, unknown, answer, late)[-1]


def test_a_reply_without_content_is_left_out():
    blank = AssistantMessage(content=(TextBlock(text=" \n"),))

    assert [] == sent(blank, AssistantMessage())


def test_a_blank_message_is_sent_as_words():
    assert [UserMessage(text="(empty)")] == sent(UserMessage(text=" "))


# C39
def test_thoughts_and_opaque_data_go_to_the_provider_and_model_that_made_them():
    ours = (
        ThinkingBlock(text="hm", provider="p"),
        OpaqueBlock(provider="p", data={"a": 1}),
        OpaqueBlock(provider="p", model="m", data={"b": 2}),
    )
    foreign = (
        ThinkingBlock(text="hm", provider="q"),
        OpaqueBlock(provider="q", data={}),
        OpaqueBlock(provider="p", model="n", data={}),
    )
    signed = ToolCall(id="a", name="look", opaque=foreign[1])

    (reply, _) = sent(AssistantMessage(content=(*ours, *foreign), calls=(signed,)))

    assert ours == reply.content
    assert reply.calls[0].opaque is None


@pytest.mark.parametrize("call_id", ["x" * 90, "functions.go:0", ""])
def test_ids_are_short_and_different(call_id):
    twice = tuple(ToolCall(id=call_id, name="look") for _ in range(12))

    reply, *results = sent(AssistantMessage(calls=twice))

    ids = [call.id for call in reply.calls]
    assert ids == [result.call for result in results]
    assert 12 == len(set(ids))
    assert LONGEST_ID >= max(map(len, ids))


def test_a_text_stands_for_what_a_model_does_not_take():
    text = base64.b64encode(b"one\ntwo").decode()
    attached = (
        PICTURE,
        FileBlock(media_type="text/plain", name="a.txt", data=text),
        FileBlock(media_type="application/pdf", name="b.pdf", data="cGRm"),
    )

    (message,) = sent(UserMessage(text="see", attachments=attached), images=False, files=False)

    assert () == message.attachments
    assert [
        "see",
        "(image/png left out: this model takes no images)",
        "a.txt:\none\ntwo",
        "(b.pdf, application/pdf, left out: this model takes no such files)",
    ] == message.text.split("\n\n")


def test_what_a_model_takes_stays():
    message = UserMessage(text="", attachments=(PICTURE,))

    assert [message] == sent(message, files=False)


def test_what_was_sent_stays_the_same_whatever_follows():
    talk = [
        UserMessage(text="start"),
        CALLS,
        ToolMessage(call="b", text="gone"),
        ToolMessage(call="a", text="a wall"),
        CALLS,
        ToolMessage(call="a", text="a door"),
        ToolMessage(call="b", text="back"),
        UserMessage(text="stop"),
    ]

    whole = sent(*talk)

    for count in (1, 4, 7):
        assert sent(*talk[:count]) == whole[:count]
