"""The tools of cueline's that read the resources and prompts of real MCP servers."""

import json
import sys

import pytest
from mcp_types import Tool

from cueline.errors import ToolChangedError, ToolFailedError
from cueline.events.agent_parts import Isolation, McpServer
from cueline.tools.mcp.definition import spec_of
from cueline.tools.mcp.listing import tools_of
from cueline.tools.mcp.reading import RESOURCE_READERS
from tests.mcp_client.conftest import HERE, PROBE

LIBRARY = McpServer(
    command=(sys.executable, "-m", "tests.mcp_client.library_server"),
    env={"PYTHONPATH": str(HERE.parents[1])},
    isolation=Isolation(kind="none"),  # it imports from this folder
)
READERS = [
    "probe__get_prompt",
    "probe__list_prompts",
    "probe__list_resources",
    "probe__read_resource",
]


@pytest.fixture(scope="module")
def tools():
    return {tool.name: tool for tool in tools_of({"probe": LIBRARY})}


@pytest.fixture
def read(executor, order, tools):
    """Call a reader; return what it reads."""

    async def call(name, /, **arguments):
        return await executor.call(order("", LIBRARY, tool=tools[f"probe__{name}"], **arguments))

    return call


def test_a_server_with_resources_and_prompts_has_tools_that_read_them_without_asking(tools):
    assert READERS == sorted(tools)
    assert {("read_only", False)} == {(t.declared, t.sensitive) for t in tools.values()}


def test_a_server_without_them_has_no_such_tools(probe_tools):
    assert set() == probe_tools.keys() & READERS


def test_the_agent_gets_the_readers_that_it_names():
    server = LIBRARY.model_copy(update={"tools": ("*resource*",), "ask": ("read_*",)})
    asks = {tool.name: tool.sensitive for tool in tools_of({"probe": server})}
    assert {"probe__list_resources": False, "probe__read_resource": True} == asks


async def test_resources_are_listed_with_templates_and_read(read):
    found = json.loads((await read("list_resources")).content)
    assert {"book://one", "cover://one"} == {each["uri"] for each in found["resources"]}
    assert ["book://{title}"] == [each["uriTemplate"] for each in found["templates"]]
    assert b"It was a dark night." == (await read("read_resource", uri="book://one")).content
    assert b"The text of two." == (await read("read_resource", uri="book://two")).content


async def test_an_image_that_is_a_resource_is_an_image(read):
    assert "image/png" == (await read("read_resource", uri="cover://one")).media_type


async def test_prompts_are_listed_and_returned_as_messages(read):
    found = json.loads((await read("list_prompts")).content)
    ((name, argument),) = [(p["name"], p["arguments"][0]["name"]) for p in found["prompts"]]
    assert ("review", "title") == (name, argument)
    told = (await read("get_prompt", name="review", arguments={"title": "Emma"})).content
    assert "user:\nReview Emma.\nassistant:\nWith pleasure." == told.decode()


@pytest.mark.parametrize(
    ("name", "arguments"),
    [("read_resource", {"uri": "no://such"}), ("get_prompt", {"name": "none"})],
)
async def test_what_a_server_does_not_have_is_a_failure_for_the_model(read, name, arguments):
    with pytest.raises(ToolFailedError) as failed:
        await read(name, **arguments)
    assert "tool_error" == failed.value.kind


async def test_a_resource_that_comes_later_can_be_listed(executor, order):
    late = next(t for t in tools_of({"probe": PROBE}, unused=True) if t.name == READERS[2])
    found = await executor.call(order("", tool=late))
    assert {"resources": [], "templates": []} == json.loads(found.content)


# A server's own tool must not pass for one that only reads, whatever it says of itself.
async def test_a_servers_own_tool_keeps_its_name_and_asks(executor, order, tools):
    own = LIBRARY.model_copy(update={"env": LIBRARY.env | {"OWN": "read_resource"}})
    found = {tool.name: tool for tool in tools_of({"probe": own})}
    assert READERS == sorted(found)
    spec = found["probe__read_resource"]
    assert ("nothing", True) == (spec.declared, spec.sensitive)
    with pytest.raises(ToolChangedError):
        await executor.call(order("", own, tool=tools["probe__read_resource"], uri="book://one"))


def test_a_tool_that_is_described_like_a_reader_has_another_digest():
    reader = RESOURCE_READERS[1]
    copy = Tool(**reader.model_dump())
    assert spec_of("probe", LIBRARY, reader).digest != spec_of("probe", LIBRARY, copy).digest
