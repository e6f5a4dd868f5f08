"""The tool contract: schema, declaration, target."""

import subprocess
import sys
from collections.abc import AsyncIterator
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import Annotated

import pytest
from pydantic import Field
from typing_extensions import TypedDict

from cueline.errors import ConfigError, ToolFailedError, ToolImportError
from cueline.tools.arguments import check_arguments
from cueline.tools.recorded_tool import load_recorded
from cueline.tools.tool import ToolContext, load, tool

EXAMPLES = Path(__file__).with_name("examples.py")
CONTEXT = ToolContext(session="session-default/1", effect="1.0", attempt=1, key="k")


def example(name):
    return load(f"{EXAMPLES}:{name}")


def test_the_model_is_told_the_docstring_without_its_sections():
    assert "Order tea.\n\nIt is brought to the desk." == example("order_tea").spec().description


def test_the_schema_describes_the_arguments_and_nothing_else():
    assert {
        "type": "object",
        "additionalProperties": False,
        "required": ["kind"],
        "properties": {
            "kind": {"type": "string", "description": "Black, green or white."},
            "cups": {"type": "integer", "default": 1, "description": "how many of them."},
        },
    } == example("order_tea").spec().parameters


def test_the_context_is_injected():
    assert "1 of black, k" == example("order_tea").run({"kind": "black"}, CONTEXT)


def test_arguments_become_the_types_that_the_function_names():
    @tool(read_only=True)
    def weekday(day: date) -> int:
        return day.weekday()

    assert 5 == weekday.run({"day": "2000-01-01"}, CONTEXT)


def test_arguments_may_have_names_that_pydantic_uses():
    @tool(read_only=True)
    def names(schema: str, model_config: int, copy: bool) -> str:  # noqa: FBT001 - the model names it
        return f"{schema} {model_config} {copy}"

    assert "s 1 True" == names.run({"schema": "s", "model_config": 1, "copy": True}, CONTEXT)


class Guest(TypedDict):
    name: str


@dataclass
class Table:
    guests: list[Guest]
    seats: int = 8


def test_an_argument_may_be_a_typed_dict_or_a_dataclass():
    @tool(read_only=True)
    def seat(table: Table, late: Guest) -> str:
        return f"{table.guests[0]['name']}, {late['name']} of {table.seats}"

    arguments = {"table": {"guests": [{"name": "Ada"}]}, "late": {"name": "Ben"}}

    assert "Ada, Ben of 8" == seat.run(arguments, CONTEXT)
    assert {"guests", "seats"} == set(seat.signature.schema()["$defs"]["Table"]["properties"])


def test_a_tool_is_still_a_function():
    assert 6 == example("double")(3)


def test_a_tool_that_says_nothing_is_never_repeated_and_never_read_only():
    assert "nothing" == example("order_tea").declared


def test_a_call_may_take_300_seconds_unless_the_tool_says_otherwise():  # C27
    assert 300 == example("double").spec().timeout_seconds


def test_an_async_function_runs_in_the_loop():
    assert example("greet").in_loop
    assert not example("double").in_loop


def test_a_tool_declares_one_thing_of_doing_it_twice():
    with pytest.raises(ConfigError, match="at most one"):
        tool(read_only=True, idempotent=True)(example("double").function)


@pytest.mark.parametrize(
    ("options", "fault"),
    [
        ({"name": "two words"}, "no name for a tool"),
        ({"timeout_seconds": 0}, "timeout_seconds is 0; it must be a positive number"),
        ({"timeout_seconds": "5"}, "timeout_seconds is '5'; it must be a positive number"),
        ({"in_loop": True}, "only an async function"),
        ({"cost_usd": "much"}, r"cost_usd is 'much'; say it as in '0\.25'"),
        ({"cost_usd": "-1"}, "cost_usd is '-1'"),
        ({"tags": "phase:plan"}, r"tags is 'phase:plan'; say it as in \['phase:plan'\]"),
        ({"paths": "path"}, r"paths is 'path'; say it as in \['path'\]"),
        ({"reconcile": "was_paid"}, "called with a key: 'was_paid' is not a callable"),
        ({"reconcile": lambda: "unknown"}, "called with a key: too many positional"),
    ],
)
def test_a_declaration_that_cannot_hold_is_refused(options, fault):
    with pytest.raises(ConfigError, match=fault):
        tool(**options)(example("double").function)


def test_a_pattern_that_cannot_be_held_to_is_refused():
    def dial(number: Annotated[str, Field(pattern="(?=.*[0-9]).+")]) -> None: ...

    with pytest.raises(ConfigError, match=r"tool dial: look-around, .* is not supported"):
        tool(dial)


# It would fail in every call, as if it had run.
def test_an_async_generator_is_no_tool():
    async def drip() -> AsyncIterator[str]:
        yield "drop"

    with pytest.raises(ConfigError, match="tool drip: an async generator returns nothing"):
        tool(drip)


def test_what_estimates_a_call_takes_its_arguments():
    with pytest.raises(ConfigError, match="called with the tool's arguments, number: missing"):
        tool(cost_usd=lambda path: path)(example("double").function)


def test_a_tool_says_what_each_call_costs_or_that_it_estimates_each():
    @tool(cost_usd="0.25")
    def fixed() -> None: ...

    printed = example("printed").spec()

    assert Decimal("0.25") == fixed.cost_usd
    assert (None, True) == (printed.cost_usd, printed.estimates)


def test_a_parameter_needs_a_type():
    with pytest.raises(ConfigError, match="`x` needs a type annotation"):

        @tool
        def untyped(x):
            return x


def test_a_parameter_needs_a_name():
    with pytest.raises(ConfigError, match="no name to be called by"):

        @tool
        def many(*x: int) -> tuple[int, ...]:
            return x


def test_a_type_without_a_json_form_is_refused():
    with pytest.raises(ConfigError, match=r"tool strange: Unable to generate .*Config'>$"):

        @tool
        def strange(x: pytest.Config) -> str:
            return str(x)


def test_arguments_that_do_not_fit_are_told_with_the_schema():
    with pytest.raises(ToolFailedError) as told:
        check_arguments(example("double").spec(), {"number": "three"})

    assert "invalid_arguments" == told.value.kind
    assert '$.number: "three" is not of type "integer"' in told.value.message
    assert '"required": ["number"]' in told.value.message


def test_an_argument_that_nobody_asked_for_does_not_fit():
    with pytest.raises(ToolFailedError, match="'extra' was unexpected"):
        check_arguments(example("double").spec(), {"number": 3, "extra": 4})


def test_every_fault_is_told_at_its_place():
    with pytest.raises(ToolFailedError) as told:
        check_arguments(example("order_tea").spec(), {"cups": ["two"], "extra": 4})

    assert "'extra' was unexpected" in told.value.message
    assert '"cups"' in told.value.message


def test_of_alternatives_it_is_told_why_none_fits():
    either = {"properties": {"number": {"anyOf": [{"type": "integer"}, {"type": "null"}]}}}
    spec = example("double").spec().model_copy(update={"parameters": either, "digest": "either"})

    with pytest.raises(ToolFailedError) as told:
        check_arguments(spec, {"number": "x"})

    told_of_both = '$.number: "x" is not of type "integer" or "x" is not of type "null"'
    assert told_of_both in told.value.message


def test_a_name_that_no_text_can_hold_does_not_fit():
    with pytest.raises(ToolFailedError, match="surrogates not allowed"):
        check_arguments(example("double").spec(), {"number": 1, "\ud800": 1})


def test_a_tool_is_found_again_by_its_target():
    target = example("double").spec().target

    assert f"{EXAMPLES}:double" == target
    assert load(target) is example("double")


def test_a_file_is_run_once():
    example("double")
    example("greet")

    assert [1] == load(f"{EXAMPLES}:double").function.__globals__["LOADED"]


@pytest.mark.parametrize(
    ("target", "reason"),
    [
        ("double", "not of the form"),
        (
            "no.such.module:double",
            "No module named 'no'; install it, or name its folder in PYTHONPATH",
        ),
        ("json:no_such_name", "json has no `no_such_name`"),
        ("json:dumps", "decorate it with `@tool`"),
        ("string:digits", "not a tool: a str"),
        ("/no/such/file.py:double", "there is no such file"),
    ],
)
def test_what_cannot_be_imported_is_named_with_the_reason(target, reason):
    with pytest.raises(ToolImportError) as refused:
        load(target)

    assert target == refused.value.subject
    assert reason in refused.value.reason


def test_a_tool_inside_a_function_has_no_target():
    @tool
    def local() -> None: ...

    with pytest.raises(ToolImportError, match="not at the top level"):
        local.spec()


def test_a_module_with_the_name_of_a_scheme_has_no_tools(tmp_path, monkeypatch):
    source = "from cueline import tool\n\n\n@tool\ndef lint() -> None:\n    pass\n"
    (tmp_path / "command.py").write_text(source)
    monkeypatch.syspath_prepend(tmp_path)

    with pytest.raises(ToolImportError, match="command has the name of a scheme: rename"):
        load("command:lint").spec()


def test_a_tool_that_declares_another_thing_than_was_recorded_is_refused():
    recorded = example("double").spec().model_copy(update={"declared": "nothing"})

    with pytest.raises(ToolImportError, match="declared is 'read_only', and was 'nothing'"):
        load_recorded(recorded)


def test_a_file_with_a_tool_that_is_none_is_told_what_is_wrong_with_it(tmp_path):
    (tmp_path / "mine.py").write_text("from cueline import tool\n\n@tool\ndef double(x): ...\n")
    target = f"{tmp_path}/mine.py:double"

    with pytest.raises(ToolImportError) as refused:
        load(target)

    assert "tool double: parameter `x` needs a type annotation" == refused.value.reason


def test_the_digest_changes_with_the_version():
    @tool(version="2")
    def double(number: int) -> int:
        return 2 * number

    globals()["double"] = double

    assert double.spec().digest != example("double").spec().digest
    assert 64 == len(double.spec().digest)


def python(*arguments):
    done = subprocess.run([sys.executable, *arguments], capture_output=True, text=True, check=False)
    return done.stdout + done.stderr


def test_a_tool_of_a_script_is_found_by_its_file(tmp_path):
    script = tmp_path / "script.py"
    script.write_text(
        EXAMPLES.read_text() + "\nfrom cueline.tools.tool import load\n"
        "print(double.spec().target, load(double.spec().target) is double)"
    )

    assert f"{script}:double True\n" == python(script)


def test_a_tool_at_a_prompt_has_to_be_put_in_a_module():
    code = EXAMPLES.read_text() + "\nprint(double.spec())"

    assert "put it in a module" in python("-c", code)
