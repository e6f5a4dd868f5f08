"""Procedures: a command with parameters, its result, and what is refused."""

import sys

import pytest
from pydantic import ValidationError

from cueline import Procedure
from cueline.errors import (
    ConfigError,
    ParameterValidationError,
    RejectedError,
    SessionFinishedError,
)
from tests.scripted import scripted

SCHEMA = {
    "type": "object",
    "properties": {"name": {"type": "string"}, "times": {"type": "integer", "default": 2}},
    "required": ["name"],
    "additionalProperties": False,
}
GREET = "import json, sys; p = json.load(sys.stdin); print(json.dumps([p, sys.argv[1:]]))"


def procedure(code=GREET, *more, **fields):
    return Procedure(
        name="greet",
        command=(sys.executable, "-c", code, *more),
        **{"parameters_schema": SCHEMA, **fields},
    )


async def result_of(runtime, agent, **parameters):
    async with runtime() as here:
        return await (await here.start(agent, parameters=parameters)).result()


# Procedures of the issue: parameters as JSON on standard input, and in its arguments.
async def test_a_command_gets_its_parameters_and_its_json_is_the_value(runtime):
    agent = procedure(GREET, "{{ input.name }}", "x{{ input.times }}")

    result = await result_of(runtime, agent, name="Ann; rm")

    assert ("completed", [{"name": "Ann; rm", "times": 2}, ["Ann; rm", "x2"]]) == (
        result.status,
        result.value,
    )


async def test_a_number_is_a_text_in_the_command(runtime):
    agent = procedure(GREET, "{{ input.times }}", "{{ input.times > `1` }}")

    result = await result_of(runtime, agent, name="Ann")

    assert [{"name": "Ann", "times": 2}, ["2", "true"]] == result.value


async def test_a_parameter_that_was_not_given_is_left_out_of_the_command(runtime):
    agent = procedure(GREET, "{{ input.size }}", "end", parameters_schema={"type": "object"})

    assert [{}, ["end"]] == (await result_of(runtime, agent)).value
    assert [{"size": 3}, ["3", "end"]] == (await result_of(runtime, agent, size=3)).value


async def test_a_program_without_a_name_is_refused(runtime):
    agent = procedure().model_copy(
        update={"command": ("{{ input.program }}",), "parameters_schema": {"type": "object"}}
    )

    assert "the program is null: give its parameter" in (await result_of(runtime, agent)).text


# What is read as JSON is declared: an object or a list. A version or a hash is a text.
@pytest.mark.parametrize("printed", ["1.10", "123e4567", "null", "[NaN]", '{"open"'])
async def test_what_only_looks_like_json_is_a_text(runtime, printed):
    result = await result_of(runtime, procedure(f"print({printed!r})"), name="a")

    assert (f"{printed}\n", None) == (result.text, result.value)


async def test_a_text_is_the_result_without_a_value(runtime):
    result = await result_of(runtime, procedure("print('Hello')"), name="a")

    assert ("Hello\n", None) == (result.text, result.value)


async def test_a_command_runs_in_its_workspace(runtime, tmp_path):
    folder = tmp_path / "work"
    folder.mkdir()
    (folder / "here.txt").write_text("x")
    agent = procedure("import os; print(os.listdir())", workspace=folder)

    assert "here.txt" in (await result_of(runtime, agent, name="a")).text


@pytest.mark.parametrize(
    ("code", "limit", "why"),
    [
        ("import sys; sys.exit('no paper')", {}, "step run: tool_error: exit status 1: no"),
        ("import time; time.sleep(9)", {"timeout_seconds": 0.3}, "step_failed: step run: timeout"),
    ],
)
async def test_a_command_that_fails_fails_the_session(runtime, code, limit, why):
    result = await result_of(runtime, procedure(code, **limit), name="a")

    assert ("failed", True) == (result.status, why in result.text)


async def test_a_program_that_is_not_there_is_named(runtime):
    agent = procedure().model_copy(update={"command": ("no-such-program",)})

    assert "no-such-program cannot be run" in (await result_of(runtime, agent, name="a")).text


@pytest.mark.parametrize(
    ("parameters", "why"),
    [
        ({}, '"name" is a required property'),
        ({"name": 3}, r"\$.name: 3 is not of type"),
        ({"name": "a", "nmae": 1}, "nmae"),
    ],
)
async def test_wrong_parameters_are_refused_before_anything_is_recorded(
    runtime, log, parameters, why
):
    async with runtime() as here:
        with pytest.raises(ParameterValidationError, match=why) as caught:
            await here.start(procedure(), parameters=parameters)

    assert ("parameter_validation_failed", SCHEMA) == (caught.value.code, caught.value.schema)
    assert "parameter_validation_failed" in str(caught.value)
    assert 0 == await log.store.last_position()


async def test_an_agent_without_a_schema_takes_no_parameters(runtime):
    agent = scripted("reply = [{ text = 'Well.' }]")
    async with runtime() as here:
        with pytest.raises(ConfigError, match="it takes no parameters, such as x"):
            await here.start(agent, "Go", parameters={"x": 1})


# procedural_agent_no_resume
async def test_a_procedure_is_not_continued(runtime):
    async with runtime() as here:
        session = await here.start(procedure(), parameters={"name": "a"})
        await session.result()

        with pytest.raises(RejectedError, match="procedural_agent_no_resume"):
            await session.send("And now?")
        with pytest.raises(SessionFinishedError, match="procedural_agent_no_resume"):
            await here.resume(session.id)
        with pytest.raises(RejectedError, match="follows a plan"):
            await here.fork(session.id, at=2)


def test_a_procedure_needs_a_command():
    with pytest.raises(ValidationError, match="command"):
        procedure().model_validate({"name": "a", "command": ()})


def test_a_procedure_has_one_tool_and_no_model():
    agent = procedure()

    assert ({"run": "run"}, ("procedure", "")) == (agent.tool_names(), agent.usual_model())
