"""A past that is run again: with the same agent it is the same, with another its differences."""

import pytest

import cueline
from cueline.agents.preflight import agent_to_record
from cueline.client.rerun import rerun_request
from cueline.deciders.prompt import Prompt
from cueline.errors import ConfigError, RejectedError
from cueline.events.agent import Policy, Rule
from cueline.providers.factory import check_agent
from tests.scripted import HELLO, scripted

RAN = []
SCRIPT = """
reply = [
    { text = "I look.", calls = [{ name = "look", arguments = { at = "a" } }] },
    { calls = [
        { name = "look", arguments = { at = "a" } },
        { name = "look", arguments = { at = "nowhere" } },
    ] },
    { text = "Done." },
    { text = "Again." },
]
"""


@cueline.tool
async def look(at: str) -> str:
    """Look at something; each look shows something else."""
    RAN.append(at)
    if at == "nowhere":
        raise ValueError("there is nothing")
    return f"{at}{len(RAN)}"


AGENT = scripted(SCRIPT, look, instructions="Look twice.")


@pytest.fixture(autouse=True)
def nothing_ran():
    RAN.clear()


def denying(tool, **fields):
    return Policy(rules=(Rule(name="closed", answer="deny", tools=(tool,), **fields),))


async def recorded(here, agent=AGENT, **how):
    session = await here.start(agent, "Go", id="one", **how)
    await session.result()
    RAN.clear()
    return session


async def prompt_of(here, name):
    """Return what the model was told: the same messages, in the same order."""
    prompt = Prompt()
    for _, fact in (await here.history(name)).events:
        prompt.add(fact)
    return prompt.messages


# 002-021: the recorded form of replies, calls and results is all that a past needs.
async def test_a_rerun_with_the_recorded_agent_repeats_everything_and_runs_no_tool(runtime):
    async with runtime() as here:
        await recorded(here)

        found = await here.rerun("one")

        again, before = [await prompt_of(here, name) for name in (found.session, "one")]
    assert (found.status, found.turns, found.results) == ("completed", 3, 3)
    assert found.differences == ()
    assert RAN == []
    assert again == before


async def test_a_rerun_costs_nothing_and_asks_for_no_money(runtime, log):
    async with runtime() as here:
        await recorded(here, scripted(SCRIPT, look, limits={"max_cost": "1"}))

        found = await here.rerun("one")

        (row,) = [each for each in (await here.sessions()).rows if each.id == found.session]
    assert (row.cost, row.tokens.input, row.tokens.output) == (0, 0, 0)
    assert [each async for each in log.store.read(f"budget-default/{found.session}")] == []


async def test_changed_instructions_and_rules_are_differences_in_order(runtime):
    async with runtime() as here:
        await recorded(here)
        agent = AGENT.model_copy(update={"instructions": "Look once.", "policy": denying("look")})

        found = await here.rerun("one", agent)

    assert [(d.turn, d.what, d.effect) for d in found.differences] == [
        (0, "instructions", ""),
        (1, "judgement", "1.0"),
        (2, "judgement", "2.0"),
        (2, "judgement", "2.1"),
    ]
    assert found.differences[1].now == "deny (rule closed)"


async def test_another_rule_with_the_same_answer_is_no_difference(runtime):
    async with runtime() as here:
        await recorded(here)
        open_to_all = Policy(rules=(Rule(name="open", answer="allow", tools=("*",)),))

        found = await here.rerun("one", AGENT.model_copy(update={"policy": open_to_all}))

    assert () == found.differences


async def test_a_tool_that_the_agent_lacks_is_named_before_its_calls(runtime):
    async with runtime() as here:
        await recorded(here)

        found = await here.rerun("one", AGENT.model_copy(update={"tools": []}))

    assert ("tools", "look", "no such tool") == (
        (first := found.differences[0]).what,
        first.tool,
        first.now,
    )
    assert "There is no tool 'look'" in found.differences[1].now


async def test_a_call_without_a_recorded_result_ends_the_rerun_and_is_named(runtime):
    async with runtime() as here:
        await recorded(here, AGENT.model_copy(update={"policy": denying("look")}))

        found = await here.rerun("one", AGENT)

    assert (found.status, found.turns, RAN) == ("failed", 1, [])
    call = found.unanswered
    assert (call.turn, call.effect, call.tool, call.arguments) == (1, "1.0", "look", {"at": "a"})


async def test_a_call_without_a_recorded_result_runs_if_that_is_wanted(runtime):
    async with runtime() as here:
        await recorded(here, AGENT.model_copy(update={"policy": denying("look")}))

        found = await here.rerun("one", AGENT, run_tools=True)

    assert (found.status, found.unanswered, found.ran) == ("completed", None, 3)
    assert RAN == ["a", "a", "nowhere"]


async def test_calls_that_run_pass_the_gate(runtime):
    asking = Policy(rules=(Rule(name="careful", answer="ask", tools=("look",)),))
    async with runtime() as here:
        await recorded(here, AGENT.model_copy(update={"policy": denying("look")}))

        found = await here.rerun("one", AGENT.model_copy(update={"policy": asking}), run_tools=True)

    assert (found.status, RAN) == ("waiting", [])


async def test_calls_that_the_recording_answers_ask_nobody(runtime):
    several = Rule(name="careful", answer="ask", tools=("look",), votes=2, may_grant=("ada", "bob"))
    async with runtime() as here:
        await recorded(here)

        found = await here.rerun(
            "one", AGENT.model_copy(update={"policy": Policy(rules=(several,))})
        )

    assert (found.status, found.results, found.differences[0].now) == (
        "completed",
        3,
        "ask (rule careful)",
    )


async def test_messages_come_again_before_the_turns_that_they_came_before(runtime, log):
    async with runtime() as here:
        session = await recorded(here, open=True)
        await session.send("And now?")
        await session.result()

        found = await here.rerun("one")

        again, before = [await prompt_of(here, name) for name in (found.session, "one")]
    assert (found.turns, found.status, found.differences) == (4, "idle", ())
    assert again == before


async def test_a_rerun_of_a_fork_includes_the_shared_past(runtime):
    async with runtime() as here:
        await recorded(here)
        version = (await here.history("one")).version
        fork = await here.fork("one", at=version, goal="Once more", id="two")
        await fork.result()

        found = await here.rerun("two")

    assert (found.turns, found.differences, found.status) == (4, (), "completed")


async def test_a_rerun_goes_on_where_its_tools_and_its_workspace_are_not(runtime, log, tmp_path):
    (tmp_path / "desk").mkdir()
    async with runtime() as here:
        await recorded(here, AGENT.model_copy(update={"workspace": tmp_path / "desk"}))
        request = await rerun_request(here, await here.find("one"), id="two")
    tools = tuple(
        t.model_copy(update={"target": "nowhere:look"}) for t in request.asked.agent.tools
    )
    agent = request.asked.agent.model_copy(update={"tools": tools})
    asked = request.asked.model_copy(update={"agent": agent})
    (tmp_path / "desk").rmdir()
    await log.ask_start("two", asked, with_it=request.messages)

    async with runtime() as there:
        await (await there.resume("two")).result()

        found = await there.rerun_result("two")

    assert (found.status, found.turns, found.differences) == ("completed", 3, ())


async def test_a_session_without_a_reply_cannot_be_run_again(runtime):
    async with runtime() as here:
        await (await here.start(HELLO, id="one")).result()

        with pytest.raises(RejectedError, match="one: it has no reply of a model"):
            await here.rerun("one")


async def test_only_a_rerun_is_compared(runtime):
    async with runtime() as here:
        await recorded(here)

        with pytest.raises(RejectedError, match="one: it is no rerun"):
            await here.rerun_result("one")


def test_an_agent_file_cannot_name_a_past_by_itself():
    agent = agent_to_record(HELLO).model_copy(
        update={"provider": "replay", "model": "7f3a", "parameters": {}}
    )

    with pytest.raises(ConfigError, match="start it with `cueline rerun 7f3a --agent FILE`"):
        check_agent(agent, {})


ASKED = scripted(
    SCRIPT, look, policy=Policy(rules=(Rule(name="ask", answer="ask", tools=("look",)),))
)


async def test_what_people_decided_is_repeated_without_asking_them(runtime):
    async with runtime() as here:
        session = await here.start(ASKED, "Go", id="one")
        said = [{"edit": {"at": "b"}, "note": "b is better"}, {}, None]
        for each in said:
            await session.result()
            asked = min((await here.pending()).rows, key=lambda row: row.id)
            if each is None:
                await here.deny(asked.id, note="not there")
            else:
                await here.approve(asked.id, **each)
        await session.result()

        found = await here.rerun("one")

        again, before = [await prompt_of(here, name) for name in (found.session, "one")]
    assert (found.status, found.results, found.differences) == ("completed", 3, ())
    assert [m.replace(b"tool_error: ", b"") for m in again] == before


async def test_a_steered_turn_is_repeated(runtime, log):
    async with runtime() as here:
        session = await here.start(ASKED, "Go", id="one")
        await session.result()
        await session.send("Not that", "steer")
        await session.result()
        await session.send("Stop here", "steer")
        await session.result()

        found = await here.rerun("one")

        again, before = [await prompt_of(here, name) for name in (found.session, "one")]
    assert (found.turns, found.differences) == (3, ())
    assert [m.replace(b"tool_error: ", b"") for m in again] == before
