"""What becomes of the parts of a pydantic-ai agent, and what is refused by name."""

from itertools import count

import pydantic_ai
import pytest
from pydantic_ai import RunContext, ToolDefinition
from pydantic_ai.messages import BinaryImage, InstructionPart
from pydantic_ai.toolsets import CombinedToolset, ExternalToolset, FunctionToolset, WrapperToolset

from cueline.adapters.pydantic_ai import from_pydantic_ai
from cueline.adapters.pydantic_ai_parts import tools_of
from cueline.errors import ConfigError
from tests.adapters import desk

NUMBERS = count()


def translated(*changes, deps=None, declared=None, **parts):
    """Translate an agent of this module that is made of *parts* and *changes*."""
    name = f"given_{next(NUMBERS)}"
    globals()[name] = made = pydantic_ai.Agent("test", **parts)
    for change in changes:
        change(made)
    place = f"{__name__}:{name}"
    return from_pydantic_ai(place, name="desk", deps=deps, declared=declared).spec()


def find(word: str) -> str:
    """Find it."""
    return word


def count_all(context: RunContext) -> int:
    return 1


# Toolsets.


def test_the_tools_of_toolsets_have_the_names_that_the_model_knows():
    inner = FunctionToolset([find, count_all], timeout=7, max_retries=4)
    both = CombinedToolset(
        [inner.prefixed("a").renamed({"f": "a_find"}), inner.approval_required()]
    )

    spec = translated(toolsets=[both.with_metadata(kind="x")])

    assert [("f", False), ("a_count_all", False), ("find", True), ("count_all", True)] == [
        (tool.name, tool.sensitive) for tool in spec.tools
    ]
    assert {7.0} == {tool.timeout_seconds for tool in spec.tools}


class Own(WrapperToolset):
    """A toolset of a user."""


MADE = FunctionToolset([find])


@pytest.mark.parametrize(
    ("toolset", "said"),
    [
        (
            Own(MADE),
            "its toolset Own: it may change in each request; give the agent a FunctionToolset",
        ),
        (MADE.filtered(lambda *_: True), "FilteredToolset: it may change"),
        (MADE.prepared(lambda _, tools: tools), "PreparedToolset: it may change"),
        (MADE.defer_loading(), "DeferredLoadingToolset: it may change"),
        (MADE.include_return_schemas(), "IncludeReturnSchemasToolset: it may change"),
        (
            ExternalToolset([ToolDefinition(name="x")]),
            "ExternalToolset: its calls have no function; give each tool one",
        ),
        (CombinedToolset([Own(MADE)]), "its toolset Own"),
        (lambda _: MADE, "DynamicToolset: it may change"),
    ],
)
def test_a_toolset_that_is_no_list_of_functions_is_refused_by_name(toolset, said):
    with pytest.raises(ConfigError, match=said):
        translated(toolsets=[toolset])


def test_two_tools_of_one_name_are_refused():
    with pytest.raises(ConfigError, match="two are called 'find'"):
        translated(toolsets=[MADE, FunctionToolset([find])])


# Instructions.


def now() -> str:
    return "It is noon."


async def greet(context: RunContext[desk.Deps]) -> str:
    return f"Sell {context.deps.goods}."


def test_functions_of_instructions_are_called_once_at_the_start():
    calls = []

    def counted() -> InstructionPart:
        calls.append(1)
        return InstructionPart(content="Count.")

    tools = FunctionToolset([find], instructions=["Find.", now])
    spec = translated(
        lambda made: made.instructions(greet),
        lambda made: made.system_prompt(now),
        deps=desk.Deps("figs", 1),
        deps_type=desk.Deps,
        system_prompt="Be kind.",
        instructions=["Be brief.", counted, InstructionPart(content="Be fair."), lambda: None],
        toolsets=[tools.prefixed("a")],
    )

    told = ["Be kind.", "It is noon.", "Be brief.", "Count.", "Be fair.", "Sell figs."]
    assert "\n\n".join([*told, "Find.", "It is noon."]) == spec.instructions
    assert [1] == calls


def of_the_run(context: RunContext) -> str:
    return f"{len(context.messages)} messages"


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (
            lambda made: made.instructions(of_the_run),
            "`of_the_run`: they are evaluated once, at the start: UserError: .RunContext.messages",
        ),
        (lambda made: made.system_prompt(dynamic=True)(now), "`now`: they change in a run"),
        (lambda made: made.instructions(name="a", on_change="append")(now), "`now`: they change"),
        (lambda made: made.instructions(greet), "`greet`: .*AttributeError"),
    ],
)
def test_instructions_of_the_run_are_refused_by_name(change, said):
    with pytest.raises(ConfigError, match=f"its instructions {said}"):
        translated(change)


async def test_instructions_are_read_in_a_running_loop_too():
    assert "Be brief." == translated(instructions=[lambda: "Be brief."]).instructions


# Dependencies.


def test_dependencies_are_recorded_with_each_tool():
    spec = translated(tools=[count_all], deps=desk.Deps("figs", 1), deps_type=desk.Deps)

    (tool,) = spec.tools
    assert {"deps": {"goods": "figs", "least": 1}} == tool.options


class Client:
    """A class without a form in JSON."""


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"deps_type": desk.Deps}, "deps: JSON cannot record None as .*desk.Deps.*or a function"),
        ({"deps_type": Client, "deps": Client()}, "(?s)as .*Client.*: Unable to generate.*a func"),
        ({"deps_type": desk.Deps, "deps": "figs"}, "deps: JSON cannot record 'figs' as"),
        ({"deps": desk.Deps("figs", 1)}, "it comes back as another value; give such a value"),
        ({"deps": lambda: 1}, "not at the top level of tests.adapters.test_pydantic_ai_parts"),
    ],
)
def test_dependencies_that_no_process_could_make_are_refused(given, said):
    with pytest.raises(ConfigError, match=said):
        translated(**given)


# The output.


def test_the_model_is_told_how_to_end():
    spec = translated(output_type=find, declared={"final_result": "read_only"})

    (tool,) = spec.tools
    assert ("final_result", "Find it.", "read_only") == (tool.name, tool.description, tool.declared)
    assert spec.instructions.startswith("When you are done, call `final_result`")


def test_an_output_has_its_own_retries():
    outputs = [pydantic_ai.ToolOutput(find, max_retries=4), count_all]
    made = pydantic_ai.Agent("test", output_type=outputs, retries={"output": 2})

    assert [4, 2] == [tool.retries for tool in tools_of(made)]


def test_an_output_that_no_code_sees_is_no_tool():
    spec = translated(output_type=[desk.Receipt, int])

    assert ((), True) == (spec.tools, "anyOf" in spec.output)


@pytest.mark.parametrize(
    ("output", "said"),
    [
        ([str, pydantic_ai.DeferredToolRequests], "DeferredToolRequests has no counterpart"),
        (BinaryImage, "its output is an image: return it from a tool"),
    ],
)
def test_an_output_without_a_counterpart_is_refused(output, said):
    with pytest.raises(ConfigError, match=said):
        translated(output_type=output)
