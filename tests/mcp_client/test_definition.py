"""What an agent records of an MCP server's tools."""

import pytest
from mcp_types import Tool, ToolAnnotations

from cueline.errors import ConfigError
from cueline.events.agent_parts import McpServer
from cueline.tools.mcp.definition import difference, name_for_model, spec_of, specs_of

SERVER = McpServer(command=("serve",))
OBJECT = {"type": "object"}


def tool(name="add", description="Add.", schema=OBJECT, **more):
    return Tool(name=name, description=description, input_schema=schema, **more)


def test_names_have_the_server_first_and_are_sorted():
    specs = specs_of("calc", SERVER, [tool("sub"), tool("add")])
    assert ["calc__add", "calc__sub"] == [each.name for each in specs]


def test_a_name_that_models_would_refuse_is_shortened_by_a_hash():
    names = [name_for_model("calc", f"{'long' * 20}{end}") for end in "ab"]
    assert [64, 64] == [len(name) for name in names]
    assert names[0] != names[1]
    assert "calc__a_b" == name_for_model("calc", "a.b")


def test_two_tools_of_one_name_are_an_error():
    with pytest.raises(ConfigError, match="calc__a_b"):
        specs_of("calc", SERVER, [tool("a.b"), tool("a_b")])


def test_a_schema_that_is_none_names_the_tool():
    with pytest.raises(ConfigError, match="schema of add is invalid"):
        specs_of("calc", SERVER, [tool(schema={"type": "objekt"})])


def test_a_schema_that_refers_to_another_place_is_not_loaded():
    schema = {"type": "object", "properties": {"a": {"$ref": "http://127.0.0.1:1/a"}}}
    with pytest.raises(ConfigError, match="is not loaded"):
        specs_of("calc", SERVER, [tool(schema=schema)])


# What a server says of its tools' effects is a claim.
def test_a_tool_is_undeclared_and_asks_whatever_its_server_says():
    claims = ToolAnnotations(read_only_hint=True, idempotent_hint=True)
    spec = spec_of("calc", SERVER, tool(annotations=claims))
    assert ("nothing", True) == (spec.declared, spec.sensitive)


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        ({"read_only": ["a*"]}, ("read_only", False)),
        ({"idempotent": ["add"]}, ("idempotent", True)),
        ({"idempotent": ["add"], "ask": []}, ("idempotent", False)),
        ({"read_only": ["add"], "ask": ["*"]}, ("read_only", True)),
        ({"read_only": ["sub"]}, ("nothing", True)),
    ],
)
def test_the_agents_file_declares_by_globs(said, expected):
    spec = spec_of("calc", McpServer(command=("serve",), **said), tool())
    assert expected == (spec.declared, spec.sensitive)


def test_the_agent_gets_the_tools_that_it_names():
    server = McpServer(command=("serve",), tools=("get_*",))
    specs = specs_of("calc", server, [tool("get_a"), tool("set_a")])
    assert ["calc__get_a"] == [each.name for each in specs]


@pytest.mark.parametrize(
    "changed",
    [
        spec_of("calc", SERVER, tool(description="Add, and more.")),
        spec_of("calc", SERVER, tool(schema={"type": "object", "required": ["a"]})),
        spec_of("calc", SERVER, tool(annotations=ToolAnnotations(destructive_hint=False))),
        spec_of("calc", McpServer(command=("other",)), tool()),
    ],
)
def test_a_changed_definition_has_another_digest(changed):
    before = spec_of("calc", SERVER, tool())
    assert before.digest != changed.digest
    assert difference(before, changed)


def test_a_difference_shows_the_lines_that_changed():
    now = spec_of("calc", SERVER, tool(description="Add, and more."))
    told = difference(spec_of("calc", SERVER, tool()), now)
    assert "-Add.\n+Add, and more." in told
