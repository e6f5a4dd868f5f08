"""The arguments of a tool call, as they are streamed."""

import pytest

from cueline.events.message import ToolCall
from cueline.providers.anthropic.reply import tool_call

MALFORMED = ['{"a": 1', "[1]", '"a"', "1", '{"a": NaN}', '{"a": 1e999}', "[" * 100_000]


@pytest.mark.parametrize("text", MALFORMED, ids=range(len(MALFORMED)))
def test_what_is_no_json_object_is_malformed(text):
    assert ToolCall(id="a", name="go", malformed=text) == tool_call("a", "go", text)


def test_arguments_nested_without_end_are_malformed():
    text = '{"a":' * 900 + "1" + "}" * 900

    assert text == tool_call("a", "go", text).malformed


def test_no_text_is_no_arguments():
    assert ToolCall(id="a", name="go") == tool_call("a", "go", "")


def test_arguments_that_came_with_the_name_are_taken():
    assert {"to": "x"} == tool_call("a", "go", "", {"to": "x"}).arguments
