"""Which replies say nothing."""

import pytest

from cueline.deciders.retry import silence
from cueline.events.codes import NO_ANSWER
from cueline.events.message import (
    OpaqueBlock,
    TextBlock,
    ThinkingBlock,
    ToolCall,
    ToolMessage,
    UserMessage,
    canonical_json,
)

THOUGHT = ThinkingBlock(text="Hm.")
OPAQUE = OpaqueBlock(provider="p", data={"type": "reasoning"})
BLANK = TextBlock(text=" \n")
ASKED = [canonical_json(UserMessage(text="Well?"))]
RESULT = [*ASKED, canonical_json(ToolMessage(call="a", text="21"))]
CASES = {
    "text": ((THOUGHT, TextBlock(text="Yes.")), (), "end_turn", ASKED, None),
    "a call": ((THOUGHT,), (ToolCall(id="a", name="go"),), "tool_use", ASKED, None),
    "thoughts": ((THOUGHT,), (), "end_turn", ASKED, NO_ANSWER),
    "thoughts and blanks": ((THOUGHT, BLANK), (), "end_turn", ASKED, NO_ANSWER),
    "hidden thoughts": ((OPAQUE,), (), "end_turn", ASKED, NO_ANSWER),
    "thoughts up to the limit": ((THOUGHT,), (), "max_tokens", ASKED, NO_ANSWER),
    "thoughts after a result": ((THOUGHT,), (), "end_turn", RESULT, NO_ANSWER),
    "a pause of the vendor": ((OPAQUE,), (), "pause_turn", ASKED, None),
    "nothing": ((), (), "end_turn", ASKED, "malformed_reply"),
    "a blank": ((BLANK,), (), "end_turn", ASKED, "malformed_reply"),
    "nothing after a result": ((), (), "end_turn", RESULT, None),
    "nothing up to the limit": ((), (), "max_tokens", ASKED, None),
}


@pytest.mark.parametrize(
    ("content", "calls", "reason", "messages", "code"), CASES.values(), ids=CASES
)
def test_a_reply_without_text_and_calls_says_nothing(content, calls, reason, messages, code):
    assert code == silence(content, calls, reason, messages)
