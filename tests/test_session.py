"""A session as its user holds it, on a real log and driven inline (C45: no cluster is needed)."""

import asyncio
import json

import pytest
from typer.testing import CliRunner

import cueline
from cueline.cli import app
from cueline.client.session import Session
from cueline.errors import ConfigError, LogUnavailableError, SessionFinishedError
from tests.scripted import scripted

SCRIPT = """
reply = [{ calls = [{ name = "ring", arguments = {} }] }, { text = "Done." }, { text = "Again." }]
"""


@cueline.tool(sensitive=True)
async def ring(bell: str = "it") -> str:
    """Ring a bell."""
    return f"{bell} rings"


def agent(**policy):
    return scripted(SCRIPT, ring, policy=cueline.Policy.model_validate(policy))


@pytest.fixture
def log(tmp_path):
    return tmp_path / "log.db"


def runtime(log):
    return cueline.open_runtime(log, on="inline")


async def question_of(session: Session):
    return [fact async for _, fact in session.events() if fact.type == "ApprovalRequested"][-1]


async def test_a_session_that_asks_a_person_rests(log):
    async with runtime(log) as here:
        result = await (await here.start(agent(), "Ring", id="one")).result()

    assert ("waiting", False) == (result.status, result.partial)


async def test_a_decision_that_was_not_read_yet_is_waited_for(log):
    async with runtime(log) as here:
        session = await here.start(agent(), "Ring")
        await session.approve(await question_of(session))

        assert "Done." == (await session.result()).text


async def test_a_call_runs_as_it_was_changed(log):
    async with runtime(log) as here:
        session = await here.start(agent(), "Ring")
        await session.approve(await question_of(session), edit={"bell": "the small one"})

        await session.result()
        facts = [fact async for _, fact in session.events()]

    assert ["the small one rings"] == [f.output for f in facts if f.type == "ToolReturned"]


# 000-001
async def test_with_each_policy_off_a_session_is_a_plain_loop(log):
    off = {
        "policy": cueline.Policy(approval="off"),
        "retry": cueline.RetryPolicy(max_retries=0),
        "breaker": cueline.BreakerPolicy(threshold=0),
    }
    async with runtime(log) as here:
        result = await (await here.start(scripted(SCRIPT, ring, **off), "Ring", id="one")).result()
        recorded = [(each.stream.split("-")[0], each.type) for each in (await here.audit()).rows]

    model = ["ModelRequested", "ModelStarted", "ModelReplied"]
    loop = ["SessionStarted", *model, "ToolStarted", "ToolReturned", *model, "SessionCompleted"]
    assert "Done." == result.text
    assert [("inbox", "StartAsked"), *(("session", each) for each in loop)] == recorded


async def test_a_session_resumed_in_another_process_goes_on(log):
    async with runtime(log) as here:
        session = await here.start(agent(), "Ring", id="one")
        question = await question_of(session)
        await session.pause()
        assert "on request" == (await session.result()).text

    async with runtime(log) as there:
        await there.session("one").approve(question)
        session = await there.resume("one")

        assert "completed" == (await session.result()).status


async def test_an_open_session_says_what_it_says_to_the_next_message(log):
    async with runtime(log) as here:
        session = await here.start(agent(approval="off"), "Ring", open=True)
        assert "Done." == (await session.result()).text

        await session.send("And again")

        assert "Again." == (await session.result()).text


async def test_a_session_that_has_ended_takes_no_more_messages(log):
    """Its last answer is no answer to them."""
    async with runtime(log) as here:
        session = await here.start(agent(approval="off"), "Ring", id="one")
        assert "Done." == (await session.result()).text

        with pytest.raises(SessionFinishedError, match="one: the session has ended: completed"):
            await session.send("And again")


async def test_a_question_that_nobody_answers_in_time_pauses_the_session(log):
    async with runtime(log) as here:
        session = await here.start(agent(approval_seconds=0.001), "Ring")

        assert "approval expired" == (await session.result()).text


def thrifty(**limits):
    """Return an agent whose one call costs 3 cents, and may cost a little more."""
    return scripted(
        'reply = [{ text = "Done.", usage = { input = 10, output = 20 } }]',
        prices={"scripted/*": {"input": 1000, "output": 1000}},
        limits={"max_output_tokens": 20, **limits},
    )


# I8, 000-022: one budget covers a session and all that it asks for.
async def test_a_child_spends_from_the_budget_of_its_parent(log):
    async with runtime(log) as here:
        parent = await here.start(thrifty(max_cost="0.50"), "Lead", id="one", open=True)
        await parent.result()
        child = await here.start(thrifty(), "Help", id="two", parent="one")

        assert "Done." == (await child.result()).text
        last = [fact async for _, fact in child.events() if fact.type == "ReservationClosed"][-1]
        assert {"max_cost": 0.12} == last.shares


async def test_a_child_of_unknown_price_does_not_start_under_a_limit_of_money(log):
    unknown = cueline.Agent(
        name="a", provider="anthropic", model="claude-none-9", key_variable="HOME"
    )
    async with runtime(log) as here:
        parent = await here.start(thrifty(max_cost="0.50"), "Lead", id="one", open=True)
        await parent.result()

        with pytest.raises(ConfigError, match="no price is known"):
            await here.start(unknown, "Help", id="two", parent="one")


@cueline.tool(read_only=True)
async def look() -> str:
    """Look, and see nothing."""
    raise cueline.ToolFailedError("unavailable", "it is dark")


# C5, 004-006
async def test_a_result_that_lacks_something_says_so(log):
    script = 'reply = [{ calls = [{ name = "look", arguments = {} }] }, { text = "Unseen." }]'
    blind = scripted(
        script,
        look,
        tool_settings={"look": cueline.ToolSettings(critical=False)},
        tool_retry=cueline.RetryPolicy(max_retries=0),
    )

    async with runtime(log) as here:
        result = await (await here.start(blind, "Look")).result()

    assert ("completed", "Unseen.", True) == (result.status, result.text, result.partial)


# 000-020
async def test_a_session_goes_on_when_it_is_given_more(log):
    spec = agent(approval="off").model_copy(update={"limits": cueline.Limits(max_turns=1)})
    async with runtime(log) as here:
        session = await here.start(spec, "Ring", id="two")
        held = await session.result()
        await session.raise_limits(max_turns=5)

        assert "limit: 1 turn since" in held.text
        assert "Done." == (await session.result()).text


# 000-022: the summary with all that descend from a session.
async def test_a_tree_is_shown_with_what_all_of_it_cost(log):
    async with runtime(log) as here:
        first = await here.start(thrifty(max_cost="0.50"), "Lead", id="one", open=True)
        await first.result()
        second = await here.start(thrifty(), "Help", id="two", open=True, parent="one")
        await second.result()
        await (await here.start(thrifty(), "Help", id="three", parent="two")).result()

    shown = await asyncio.to_thread(CliRunner().invoke, app, ["show", "one", "--log", str(log)])
    costs = await asyncio.to_thread(
        CliRunner().invoke, app, ["costs", "--by", "tree", "--json", "--log", str(log)]
    )

    assert "with 2 descendants: $0.0900" in shown.stdout
    assert [("one", 3, "0.09")] == [
        (row["name"], row["sessions"], row["cost"]) for row in json.loads(costs.stdout)["rows"]
    ]


async def test_a_place_that_there_is_not_is_refused_before_a_log_is_made(tmp_path):
    with pytest.raises(ConfigError, match="'in-line' is none of 'auto', 'ray' and 'inline'"):
        async with cueline.open_runtime(tmp_path / "log.db", on="in-line"):
            pass

    assert [] == [*tmp_path.iterdir()]


async def test_an_address_of_a_cluster_is_refused_where_there_is_none(tmp_path):
    with pytest.raises(ConfigError, match=r"10\.0\.0\.7:6379 is Ray's"):
        async with cueline.open_runtime(tmp_path / "log.db", on="inline", address="10.0.0.7:6379"):
            pass


async def test_a_session_without_a_goal_waits_for_its_first_message(log):
    async with runtime(log) as here:
        session = await here.start(agent(approval="off"))
        assert ("idle", "") == ((await session.result()).status, (await session.result()).text)
        await session.send("Ring")

        assert "Done." == (await session.result()).text


async def test_who_waits_when_the_runtime_ends_is_told_so(log):
    async with runtime(log) as here:
        session = await here.start(agent(), "Ring", open=True)
        await session.pause()
        waiting = asyncio.create_task(keep_following(session))
        await session.result()

    for told in (waiting, session.result(), session.send("More")):
        with pytest.raises(LogUnavailableError, match=r"log\.db: it was closed"):
            await told


async def keep_following(session: Session):
    async for _ in session.follow():
        pass


@cueline.tool(read_only=True)
async def whose(context: cueline.ToolContext) -> str:
    """Say whose call it is."""
    return context.session


async def test_a_tool_is_told_a_name_by_which_its_session_is_found(log):
    script = 'reply = [{ calls = [{ name = "whose", arguments = {} }] }, { text = "Mine." }]'
    async with runtime(log) as here:
        session = await here.start(scripted(script, whose), "Whose?", id="one", open=True)
        told = [f.output async for _, f in session.events() if f.type == "ToolReturned"]

        assert "Mine." == (await here.session(told[0]).result()).text
        child = await here.start(scripted(script, whose), "And yours?", parent=told[0])
        assert "Mine." == (await child.result()).text
        await session.pause()
        assert "one" == (await here.resume(told[0])).id
