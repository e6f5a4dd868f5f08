"""An agent that is shown two tools, and finds those of an MCP server with them."""

import json

from cueline.cli.failure import Exit
from tests.cli.test_mcp_servers import ENDS, calls, server

ADD = 'name = "call_tool", arguments = { name = "probe__add", arguments = { a = 1, b = 2 } }'
SEARCHED = 'tools = "search"\n'
FINDS = calls("find_tools", query="add two numbers")
CALLS = f'[[reply]]\ntext = ""\ncalls = [{{ {ADD} }}]\n'


def test_a_tool_is_found_and_called(shell):
    more = server(more=f'{SEARCHED}read_only = ["add"]\n')
    ended = shell(
        "run", "--agent", shell.agent(FINDS + CALLS + ENDS, more=more), "--id", "o", "Go."
    )
    assert 0 == ended.exit_code, ended.output
    assert "probe__add" in ended.output
    assert 1 == shell.types("o").count("ToolStarted")  # the search runs on no runner
    assert 2 == shell.types("o").count("ToolReturned")


def test_a_person_is_asked_about_the_tool_itself(shell):
    agent = shell.agent(CALLS + ENDS, more=server(more=SEARCHED))
    asked = shell("run", "--agent", agent, "--id", "o", "Go.")
    assert asked.exit_code == Exit.WAITING, asked.output
    (question,) = json.loads(shell("pending", "--json").output)
    assert ("probe__add", {"a": 1, "b": 2}) == (question["tool"], question["arguments"])
    shell("approve", question["id"])
    ended = shell("resume", "o", "--inline")
    assert 0 == ended.exit_code, ended.output
    assert "ToolReturned" in shell.types("o")


def test_what_is_wrong_with_a_call_by_name_is_told_to_the_model(shell):
    wrong = CALLS.replace("probe__add", "probe__ad")
    wrong += CALLS.replace('"probe__add"', "7") + CALLS.replace("b = 2", 'b = "two"')
    agent = shell.agent(wrong + ENDS, more=server(more=SEARCHED))
    ended = shell("run", "--agent", agent, "--id", "o", "Go.")
    assert 0 == ended.exit_code, ended.output
    assert "There is no tool 'probe__ad'. Did you mean probe__add" in ended.output
    assert "call_tool was not run" in ended.output  # its name is no text
    assert "probe__add was not run" in ended.output
    assert 0 == shell.types("o").count("ToolStarted")


def test_the_tools_are_listed_for_a_person(shell):
    shell.agent(ENDS, more=server(more=SEARCHED))
    listed = shell("tools", "--agent", "agent.toml").output
    assert "probe__add" in listed
    assert "find_tools" in listed
