"""A session with a plan on its host: values, messages, children, and what is refused."""

import json

import pytest

from cueline.actors.inbox import check_heard
from cueline.deciders.session import session_of
from cueline.errors import RejectedError
from cueline.events.agent_parts import VALUE_LIMIT, Plan, Step
from cueline.events.inbox import MessageSent
from cueline.events.session import (
    CallsAdded,
    SessionCompleted,
    SessionFailed,
    SessionStarted,
    ToolReturned,
)
from cueline.testing.crash import Outside
from cueline.testing.fakes import JournalingExecutor, agent_spec, asks_for, says, tool_spec
from cueline.tools.arguments import check_call
from tests.actors.session_harness import SESSION, SessionHarness
from tests.crash import story
from tests.crash.delegation import TreeModel, agent_tool

LOOK = tool_spec("look", "read_only")


def planned(*steps, act, secrets=(), tools=(LOOK,), **agent):
    return SessionHarness(
        (), tools, act, secrets, provider="workflow", plan=Plan(steps=steps), **agent
    )


def returning(value):
    async def act(_order):
        return value

    return act


@pytest.mark.parametrize("value", [{"a": [1, "é"]}, 12, None, False, [], 2**70])
async def test_the_value_of_a_call_is_what_it_returned(value):
    session = planned(Step(name="look"), act=returning(value))

    await session.begin()

    for last in (await session.last(ToolReturned), await session.last(SessionCompleted)):
        assert (value, value is None) == (last.value, last.is_null)
    assert value == json.loads(last.result)


@pytest.mark.parametrize("text", ["plain words", "1.10", "null", "", '{"a": 1}', "[" * 100_000])
async def test_a_text_is_recorded_once_and_never_read_as_json(text):
    session = planned(Step(name="look"), act=returning(text))

    await session.begin()

    for last in (await session.last(ToolReturned), await session.last(SessionCompleted)):
        assert (None, False) == (last.value, last.is_null)
    assert text == last.result


async def test_neither_a_value_nor_its_text_is_cut():
    whole = {"lines": ["x" * 100] * 3_000}
    session = planned(Step(name="look"), act=returning(whole))

    await session.begin()

    returned = await session.last(ToolReturned)
    assert (whole, whole) == (returned.value, json.loads(returned.output))


@pytest.mark.parametrize("result", [["x" * VALUE_LIMIT], "x" * (VALUE_LIMIT + 4)])
async def test_a_result_over_its_limit_fails_the_step(result):
    session = planned(Step(name="look"), act=returning(result))

    await session.begin()

    failed = await session.last(SessionFailed)
    assert "step look: result_too_large: its result has 1,048,580 bytes, and the" in failed.message


# I11
async def test_a_value_holds_no_secret():
    session = planned(
        Step(name="look"),
        act=returning({"key": "hunter2hunter2"}),
        secrets=["hunter2hunter2"],
    )

    await session.begin()

    assert "hunter2hunter2" not in str((await session.last(ToolReturned)).value)


async def test_the_calls_of_a_session_with_a_model_have_no_value():
    session = SessionHarness([asks_for(("look", {})), says("done")], (LOOK,), returning([1]))

    await session.begin()

    assert (await session.last(ToolReturned)).value is None


async def test_the_parameters_are_recorded_with_the_start():
    session = planned(Step(name="look", arguments={"n": "{{ input.n }}"}), act=returning(1))

    await session.begin(parameters={"n": 5})

    assert {"n": 5} == (await session.last(SessionStarted)).parameters
    (call,) = (await session.last(CallsAdded)).calls.values()
    assert {"n": 5} == call.arguments


# At the deadline the step fails; a message that was recorded before it counts.


async def waiting():
    session = planned(Step(name="go", wait="go", timeout_seconds=60), act=returning(1), tools=())
    await session.begin()
    return session


async def test_a_message_wakes_a_session_that_rests():
    session = await waiting()

    await session.say(MessageSent(lane="note", text="1", name="go", value=[1]))

    assert [1] == (await session.last(SessionCompleted)).value


async def test_a_wait_ends_at_its_deadline():
    session = await waiting()

    await session.clock.advance(61)
    await session.world()

    assert "step go: message_timeout" in (await session.last(SessionFailed)).message


async def test_a_message_that_came_in_time_counts_though_it_is_read_after_the_deadline():
    session = planned(Step(name="go", wait="go", timeout_seconds=60), act=returning(1), tools=())
    world = await session.begin()
    await world.kill()
    await session.outside.say(SESSION, MessageSent(lane="note", text="1", name="go", value=[1]))
    await session.clock.advance(100)

    await session.world()

    assert [1] == (await session.last(SessionCompleted)).value


async def test_a_child_step_with_wrong_parameters_fails_before_the_child_is_asked_for():
    schema = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}
    child = agent_spec(LOOK, parameters_schema=schema).model_copy(update={"name": "mend"})
    tool = agent_tool("mend", parameters=schema)
    plan = Plan(steps=(Step(name="mend", arguments={"n": "x"}),))
    spec = agent_spec(tool, agents={"mend": child}, plan=plan, provider="workflow")
    place = Outside.new(TreeModel({}), JournalingExecutor({}))
    place.check_call = check_call
    await place.start("story", spec, None)
    await story.drive(place)

    last = (await place.facts(story.SESSION))[-1]
    assert isinstance(last, SessionFailed)
    assert "step mend: not_started" in last.message
    assert [] == await place.facts("inbox-default/story.1.0")


def test_a_message_that_nobody_reads_is_refused_before_it_is_recorded():
    agent = agent_spec(plan=Plan(steps=(Step(name="go", wait="go"),)), provider="procedure")

    with pytest.raises(RejectedError, match="procedural_agent_no_resume"):
        check_heard(session_of(SESSION), (), MessageSent(lane="note", text="x"), agent)


# 003-058, D26: a veto window between two steps.
def gated():
    steps = (Step(name="look", auto_approve=False), Step(name="post", needs=("look",)))
    tools = (LOOK, tool_spec("post"))
    return planned(*steps, act=returning(1), tools=tools, policy={"auto_approve_after": 3})


async def test_a_step_that_nobody_denies_in_time_is_granted():
    session = gated()
    await session.begin()
    assert "approval" == (await session.state()).waiting.kind

    await session.clock.advance(3)
    await session.world()

    assert isinstance((await session.outside.facts(SESSION))[-1], SessionCompleted)
    assert ["look", "post"] == [start.tool for start in session.executor.starts]


async def test_a_denial_within_the_window_wins():
    session = gated()
    await session.begin()

    await session.decide("deny")
    await session.clock.advance(3)

    assert "step post: rejected" in (await session.last(SessionFailed)).message
    assert ["look"] == [start.tool for start in session.executor.starts]
