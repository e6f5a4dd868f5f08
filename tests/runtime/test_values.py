"""What passes between the steps of a workflow is what was returned, whole and of its type."""

import json
import math

import pytest

from cueline import Procedure, Workflow, tool
from cueline.client.history import read_history
from cueline.client.workflow import workflow_state
from cueline.events.agent_parts import VALUE_LIMIT
from tests.scripted import scripted

LARGE = 2**80
LONG = "line of text\n" * 8_000


@tool(read_only=True)
async def echo(v: object = None) -> object:
    """Return it."""
    return v


@tool(read_only=True)
async def nothing() -> None:
    """Return None."""


@tool(read_only=True)
async def text(v: str) -> str:
    """Return a text."""
    return v


@tool(read_only=True)
async def long_text(size: int) -> str:
    """Return a long text."""
    return (LONG * (size // len(LONG) + 1))[:size]


@tool(read_only=True)
async def sick() -> dict:
    """Return what JSON lacks."""
    return {"rows": [{"score": 1.0}, {"score": math.nan}]}


@tool(read_only=True)
async def huge() -> int:
    """Return more digits than Python writes."""
    return 10**5000


def step(name, uses, **fields):
    return {"name": name, "tool": uses, **fields}


async def result_of(runtime, *steps, output=""):
    agent = Workflow(name="flow", steps=steps, output=output)
    async with runtime() as here:
        return await (await here.start(agent)).result()


# cases/workflows: compare_text_with_number.toml
async def test_a_text_is_neither_above_nor_below_a_number(runtime):
    found = await result_of(
        runtime,
        step("a", echo, arguments={"v": "abc"}),
        step("b", echo, when="steps.a.value > `3`"),
        output="[steps.a.value, steps.b.status]",
    )

    assert ["abc", "skipped"] == found.value


# cases/workflows: none_is_null.toml
async def test_none_is_null_and_false(runtime):
    found = await result_of(
        runtime,
        step("none", nothing),
        step("b", echo, when="steps.none.value"),
        step("c", echo, arguments={"v": "{{ steps.none.value }}"}),
        step("d", echo, arguments={"v": "{{ steps.none.text }}"}),
        output="[steps.none.value, steps.b.status, steps.c.value, steps.d.value]",
    )

    assert [None, "skipped", None, "null"] == found.value


async def test_the_result_of_a_workflow_that_a_step_runs_may_be_null(runtime):
    free = {"type": "object"}
    child = Workflow(name="child", steps=[step("none", nothing)], parameters_schema=free)
    found = await result_of(
        runtime, {"name": "kid", "agent": child}, output="{v: steps.kid.value, t: steps.kid.text}"
    )

    assert {"v": None, "t": "null"} == found.value


# cases/workflows: text_that_looks_like_json.toml
@pytest.mark.parametrize("said", ["1.10", "4e12", "123e4567", "007", "null", "true", '{"a": 1}'])
async def test_a_text_stays_a_text(runtime, said):
    found = await result_of(
        runtime,
        step("a", text, arguments={"v": said}),
        step("b", echo, arguments={"v": "{{ steps.a.value }}"}),
        step("c", text, arguments={"v": "v{{ steps.a.value }}"}),
        output="[steps.a.value, steps.a.text, steps.b.value, steps.c.text]",
    )

    assert [said, said, said, f"v{said}"] == found.value


@pytest.mark.parametrize("value", [LARGE, -LARGE, [LARGE], 0, False, [], {}, [None, 1.5]])
async def test_a_value_keeps_its_type(runtime, value):
    found = await result_of(
        runtime,
        step("a", echo, arguments={"v": value}),
        step("b", echo, arguments={"v": "{{ steps.a.value }}"}),
        output="[steps.a.value, steps.b.value]",
    )

    assert ([value, value], repr([value, value])) == (found.value, repr(found.value))
    assert [value, value] == json.loads(found.text)


async def test_a_number_that_json_lacks_is_refused_by_its_path(runtime):
    found = await result_of(runtime, step("a", sick))

    assert "failed" == found.status
    assert "its result has nan at rows[1].score: JSON has null" in found.text


async def test_a_number_that_no_reader_takes_is_refused(runtime):
    found = await result_of(runtime, step("a", huge))

    assert ("failed", 1) == (found.status, found.text.count("4300 digits"))


# What it prints is no UTF-8, or JSON that is nested too deeply: the call ran, and has a text.
@pytest.mark.parametrize("printed", [r'{"name": "caf\351"}', "[" * 600 + "]" * 600])
async def test_what_a_program_prints_is_a_result_whatever_it_is(runtime, printed):
    program = Procedure(name="print", command=("printf", printed))
    async with runtime() as here:
        found = await (await here.start(program)).result()

    assert "completed" == found.status


# cases/workflows: long_text.toml
async def test_a_long_text_is_passed_on_whole(runtime):
    found = await result_of(
        runtime,
        step("t", long_text, arguments={"size": 300_000}),
        step("m", text, arguments={"v": "{{ steps.t.text }}"}),
        step("each", text, for_each="[steps.t.text]", arguments={"v": "{{ item }}"}),
        output="[length(steps.t.text), steps.m.value == steps.t.text, "
        "steps.each.text == steps.t.text]",
    )

    assert [300_000, True, True] == found.value


# cases/workflows: long_reply_of_a_child.toml
async def test_the_reply_of_a_child_is_passed_on_whole(runtime):
    child = scripted(f"reply = [{{ text = {'x' * 100_000!r} }}]", name="kid")
    found = await result_of(
        runtime,
        {"name": "kid", "agent": child, "arguments": {"goal": "review"}},
        output="[length(steps.kid.text), length(steps.kid.value)]",
    )

    assert [100_000, 100_000] == found.value


async def test_what_is_larger_than_may_be_passed_on_is_refused(runtime):
    size = VALUE_LIMIT + 1
    child = scripted(f"reply = [{{ text = {'x' * size!r} }}]", name="kid")
    program = Procedure(name="print", command=("head", "-c", str(size), "/dev/zero"))
    of_tool = await result_of(runtime, step("t", long_text, arguments={"size": size}))
    of_child = await result_of(
        runtime, {"name": "kid", "agent": child, "arguments": {"goal": "review"}}
    )
    of_items = await result_of(
        runtime,
        step("a", long_text, for_each="[`1`, `2`]", arguments={"size": VALUE_LIMIT - 1}),
    )
    async with runtime() as here:
        of_program = await (await here.start(program)).result()

    for each in (of_tool, of_child, of_items, of_program):
        assert "failed" == each.status
        assert "result_too_large" in each.text
        assert "the most is 1,048,576" in each.text


# cases/workflows: wait_not_critical.toml
async def test_a_wait_without_which_it_goes_on_goes_on(runtime, clock):
    steps = (
        {"name": "c", "wait": "later", "timeout_seconds": 2, "critical": False},
        step("d", text, needs="c", condition="always", arguments={"v": "{{ steps.c.status }}"}),
    )
    async with runtime() as here:
        session = await here.start(Workflow(name="flow", steps=steps))
        await clock.settle()
        await clock.advance(3)
        found = await session.result()

    assert ("completed", "failed", True) == (found.status, found.text, found.partial)


# cases/workflows: two_waits_of_one_name.toml
async def test_one_message_closes_one_wait_the_oldest(runtime, log, clock):
    steps = ({"name": "a", "wait": "go"}, {"name": "b", "wait": "go"})
    agent = Workflow(name="flow", steps=steps, output="[steps.a.value, steps.b.value]")
    async with runtime() as here:
        session = await here.start(agent)
        await session.send('{"n": 1}', name="go")
        await clock.settle()
        between = workflow_state(await read_history(log, f"session-default/{session.id}")).steps
        await session.send("null", name="go")
        found = await session.result()

    assert ["completed", "running"] == [each.status for each in between]
    assert [{"n": 1}, None] == found.value
