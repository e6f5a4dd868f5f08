"""A tool that is another than the one that was recorded."""

import pytest
from msgspec.structs import replace

from cueline.agents.agent_tool import ToolSettings
from cueline.errors import ToolChangedError, ToolImportError
from cueline.events.agent_parts import Demands, RetryPolicy
from cueline.tools.recorded_tool import changed_since, check_unchanged, load_recorded
from cueline.tools.tool import load
from tests.tools.conftest import HERE

DOUBLE = load(f"{HERE}/examples.py:double").spec()
"""It has one parameter, `number`, a whole number."""
NUMBER = {"type": "integer"}


def recorded(required=("number",), **properties):
    """Return what was recorded of a tool that has changed since."""
    parameters = {**DOUBLE.parameters, "properties": properties, "required": list(required)}
    return DOUBLE.model_copy(update={"parameters": parameters})


@pytest.mark.parametrize(
    ("before", "told"),
    [
        (recorded(("count",), count=NUMBER), ["'count' was removed", "'number' was added"]),
        (recorded(number={"type": "string"}), ["'number' was changed"]),
        (recorded((), number=NUMBER), ["'number' was changed"]),
        (recorded(()), ["'number' was added"]),
    ],
)
def test_what_changed_of_its_parameters_is_named(before, told):
    with pytest.raises(ToolChangedError) as refused:
        load_recorded(before)

    assert "; ".join(f"parameter {each}" for each in told) == refused.value.reason


def test_a_type_that_its_parameters_use_may_have_changed():
    used = {**DOUBLE.parameters, "$defs": {"Size": {"enum": [1, 2]}}}

    with pytest.raises(ToolChangedError, match="a type of its parameters was changed"):
        load_recorded(DOUBLE.model_copy(update={"parameters": used}))


def test_other_words_for_a_parameter_are_no_change():
    before = recorded(number={**NUMBER, "description": "In other words."})

    assert DOUBLE.name == load_recorded(before).name


def test_a_parameter_with_a_default_is_no_change():
    printed = load(f"{HERE}/examples.py:printed").spec()
    before = {
        **printed.parameters,
        "properties": {"pages": printed.parameters["properties"]["pages"]},
    }

    assert load_recorded(printed.model_copy(update={"parameters": before}))


def test_a_tool_under_another_name_is_not_the_tool():
    with pytest.raises(ToolImportError, match="it is called 'double' here, and was 'twice'"):
        load_recorded(DOUBLE.model_copy(update={"name": "twice"}))


def test_all_tools_that_changed_are_named_at_once():
    other = DOUBLE.model_copy(update={"version": "0"})

    with pytest.raises(ToolChangedError) as refused:
        check_unchanged("clerk", [other, DOUBLE, recorded(number={"type": "string"})], "so")

    assert (
        "clerk: its tools have changed: double (version is '1', and was '0'), "
        "double (parameter 'number' was changed); put them back, or go on with them as they are "
        "now:\n  so" == str(refused.value)
    )


@pytest.mark.parametrize(
    "settings",
    [
        ToolSettings(critical=False, timeout_seconds=7),
        ToolSettings(demands=Demands(labels={"gpu": "a100"}), retry=RetryPolicy(max_retries=9)),
    ],
)
def test_a_changed_tool_is_taken_as_it_is_now_but_for_what_the_agent_says_of_it(settings):
    before = settings.applied_to(recorded(number={"type": "string"}))

    assert (settings.applied_to(DOUBLE),) == changed_since([DOUBLE, before])


@pytest.mark.parametrize(
    ("name", "arguments"), [("double", {"number": 3}), ("greet", {"name": "Ada"})]
)
async def test_nothing_runs_where_a_call_may_mean_another_thing(executor, order, name, arguments):
    asked = order(f"examples:{name}", **arguments)
    changed = asked.tool.model_copy(update={"version": "0"})

    with pytest.raises(ToolChangedError, match="version is '1', and was '0'"):
        await executor.call(replace(asked, tool=changed))
