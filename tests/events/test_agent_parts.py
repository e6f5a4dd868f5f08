"""The parts of a recorded agent that name variables, servers and isolation."""

import pytest

from cueline.events.agent_parts import Isolation, McpServer, is_secret, problem_of, with_values
from tests.session_example import agent


def test_a_server_names_the_variables_that_it_gets():
    local = McpServer(command=("serve",), env={"A": "$ONE and $TWO", "B": "plain"})
    far = McpServer(url="https://example.com/mcp", headers={"Authorization": "Bearer $KEY"})

    assert {"ONE", "TWO"} == local.variables
    assert {"KEY"} == far.variables
    assert {"Authorization": "Bearer k"} == with_values(far.headers, {"KEY": "k"})


@pytest.mark.parametrize(
    ("headers", "problem"),
    [
        ({"X-Api-Key": "abc"}, "would be recorded"),
        ({"a b": "c"}, "no header"),
        ({"Accept": "text/plain", "X-Api-Key": "$KEY"}, ""),
    ],
)
def test_a_header_that_holds_a_secret_names_a_variable(headers, problem):
    assert problem in problem_of(headers)
    assert bool(problem) == bool(problem_of(headers))
    assert is_secret("X-Api-Key")


def test_the_name_of_a_kind_is_an_isolation():
    assert Isolation(kind="none") == Isolation.model_validate("none")


@pytest.mark.parametrize(
    ("target", "server"), [("mcp:git/log", "git"), ("builtin:read_file", ""), ("a.py:b", "")]
)
def test_a_tool_names_its_server(target, server):
    tool = agent().tools[0].model_copy(update={"target": target})

    assert server == tool.server
    assert tool is tool.for_call("1.0", {})
