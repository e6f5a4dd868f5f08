import pytest

from cueline.events.message import (
    AssistantMessage,
    OpaqueBlock,
    TextBlock,
    ThinkingBlock,
    ToolCall,
    ToolMessage,
    assistant_json,
    tool_json,
)

BLOCKS = (
    TextBlock(text='é "quoted"\n\u2028'),
    ThinkingBlock(text="Hm.", signature="s"),
    OpaqueBlock(provider="anthropic", data={"at": [1, 2.5, None], "big": 10**30}),
)
CALLS = (
    ToolCall(id="a", name="look", arguments={"far": float("inf"), "not": float("nan"), "b": True}),
    ToolCall(id="b", name="look", malformed="{", problem="It is cut off."),
)


@pytest.mark.parametrize("content", [(), BLOCKS])
@pytest.mark.parametrize("calls", [(), CALLS])
def test_what_the_model_said_is_written_as_its_message_is(content, calls):
    message = AssistantMessage(content=content, calls=calls)

    assert message.model_dump_json().encode() == assistant_json(content, calls)


@pytest.mark.parametrize("failed", [True, False])
def test_a_result_is_written_as_its_message_is_whatever_is_in_it(failed):
    every = "".join([chr(point) for point in range(0x11000) if not 0xD800 <= point < 0xE000])
    message = ToolMessage(call="a", text=every, failed=failed)

    assert message.model_dump_json().encode() == tool_json("a", every, failed=failed)
