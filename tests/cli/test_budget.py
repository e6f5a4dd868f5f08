"""`cueline budget`: what a session may use, and more of it."""

import asyncio
import json

import pytest

from cueline import Agent, open_runtime

FIVE_TURNS = "".join(
    f'[[reply]]\ntext = "{n}"\ncalls = [{{ name = "list_files", arguments = {{}} }}]\n'
    for n in range(4)
)
LIMITED = "[limits]\nmax_turns = 2\nmax_wall_seconds = 86400\n"


def reach_limit(shell):
    script = FIVE_TURNS + shell.hello
    done = shell(
        "run", "Look", "--agent", shell.agent(script, tools=("list_files",), more=LIMITED),
        "--inline", "--id", "one", "--time-budget", "1h",
    )  # fmt: skip
    assert done.exit_code == 3, done.output


@pytest.fixture
def limited(begin):
    """A shell whose log holds a session `one` that is held at its second turn."""
    return begin(reach_limit)


# 000-020: held, not failed; how to go on is said.
def test_each_limit_is_shown_with_what_is_used_and_who_set_it(limited):
    head, columns, turns, work, wall, clocks = limited("budget", "show", "one").stdout.splitlines()

    assert head == "session one: paused"
    assert columns.split() == ["LIMIT", "USED", "RESERVED", "OF", "SHARE", "SET", "BY"]
    assert " ".join(turns.split()) == "turns 2 2 100% agent.toml"
    assert " ".join(work.split()).endswith("1h 00m 0% flag --time-budget")
    assert wall.startswith("time since the start")
    assert clocks.startswith("clocks: active 0.")


# 000-007: with nothing running; the session goes on where it was.
def test_a_raise_counts_although_nothing_runs(limited):
    told = limited("budget", "raise", "one", "--max-turns", "10", "--time-budget", "2h")
    done = limited("resume", "one", "--inline")

    assert told.exit_code == 0
    assert "one: asked for more; nothing drives it now" in told.stdout
    assert done.exit_code == 0, done.output
    assert "raised to turns 10, time of work 2h 00m" in done.stdout
    rows = limited.json("budget", "show", "one")["rows"]
    assert [("10", "raised"), ("7200.0", "raised")] == [(r["of"], r["source"]) for r in rows[:2]]


@pytest.mark.parametrize(
    ("words", "why"),
    [
        ([], "name a limit: --max-cost"),
        (["--max-turns", "2"], "max_turns is 2 already: it can only be raised"),
        (["--max-cost", "1"], "the session has no max_cost: a limit can be raised"),
        (["--max-cost", "much"], "--max-cost"),
        (["--max-tokens", "0"], "--max-tokens"),
        (["--time-budget", "soon"], "a time is a number of seconds"),
    ],
)
def test_what_cannot_be_raised_is_refused_at_once(words, why, limited):
    done = limited("budget", "raise", "one", *words)

    assert done.exit_code == 2
    assert why in done.stderr
    assert "RaiseAsked" not in limited("audit", "--session", "one").stdout


def test_a_raise_is_compared_with_one_that_is_not_read_yet(limited):
    limited("budget", "raise", "one", "--max-turns", "10")

    lower = limited("budget", "raise", "one", "--max-turns", "5")
    higher = limited("budget", "raise", "one", "--max-turns", "20")

    assert lower.exit_code == 2
    assert "max_turns is 10 already: it can only be raised (asked for before" in lower.stderr
    assert higher.exit_code == 0
    limited("resume", "one", "--inline")
    assert "20" == limited.json("budget", "show", "one")["rows"][0]["of"]


def test_a_session_that_was_not_taken_up_has_its_agents_limits(shell):
    agent = shell.agent(shell.hello, more="[limits]\nmax_cost = '1.00'\n")
    shell("run", "Hi", "--agent", agent, "--detach", "--id", "one")

    assert [] == shell.json("budget", "show", "one")["rows"]
    assert shell("budget", "raise", "one", "--max-cost", "2.50").exit_code == 0
    assert shell("budget", "raise", "one", "--max-tokens", "9").exit_code == 2


def test_a_session_that_has_ended_takes_no_more(finished):
    done = finished("budget", "raise", "one", "--max-turns", "100")

    assert done.exit_code == 2
    assert "the session has ended: completed" in done.stderr


def held(shell, more):
    """Run a session until it is held, and return what is said then."""
    script = FIVE_TURNS.replace("calls =", "delay_seconds = 0.01\ncalls =") + shell.hello
    agent = shell.agent(script, tools=("list_files",), more=more)
    done = shell("run", "Look", "--agent", agent, "--inline", "--id", "two")
    assert done.exit_code == 3, done.output
    return done.stdout.splitlines()[-3:]


@pytest.mark.parametrize(
    ("more", "why", "option"),
    [
        (
            (
                "[limits]\nmax_cost = '0.01'\nmax_output_tokens = 9\n"
                "[prices.'scripted/*']\ninput = 10\noutput = 100\n"
            ),
            "not enough left: max_cost 0.01 USD",
            "--max-cost USD",
        ),
        (
            "[limits]\nmax_active_seconds = 0.00001\n",
            "limit: 1e-05 s of work (max_active_seconds)",
            "--time-budget TIME",
        ),
    ],
)
def test_who_is_held_at_a_limit_is_told_how_to_have_more(shell, more, why, option):
    said, command, resume = held(shell, more)

    assert said.startswith(f"paused: {why}")
    assert said.endswith("raise the limit, and it goes on")
    assert f"  cueline budget raise two {option}" == command
    assert "  cueline resume two" == resume


PRICED = """[limits]
max_output_tokens = 100
max_cost = "0.0039"

[prices."scripted/*"]
input = "3.00"
output = "15.00"
"""


def spend(shell):
    script = FIVE_TURNS + shell.hello
    agent = shell.agent(script, tools=("list_files",), more=PRICED)
    done = shell("run", "Look", "--agent", agent, "--inline", "--id", "one")
    assert done.exit_code == 3, done.output
    assert "not enough left: max_cost 0.0039 USD" in done.stdout


@pytest.fixture
def spent(begin):
    """A shell whose log holds a session `one` whose second call has no room."""
    return begin(spend)


def test_a_turn_that_is_held_before_its_call_is_not_used(spent):
    turns = spent.json("budget", "show", "one")["rows"][0]

    assert ("max_turns", "1") == (turns["limit"], turns["used"])


# 000-003, 000-019, 000-048, C21, D8, D34: paused before the call, and not failed.
def test_a_session_whose_budget_is_spent_goes_on_after_a_raise(spent):
    raised = spent("budget", "raise", "one", "--max-cost", "1")
    done = spent("resume", "one", "--inline")

    assert (0, 0) == (raised.exit_code, done.exit_code), done.output
    assert "completed" in done.stdout
    assert 0 == spent("replay", "one", "--check").exit_code


def test_a_fork_has_the_limits_as_they_were_raised_and_nothing_spent(spent):
    spent("budget", "raise", "one", "--max-cost", "1")
    spent("resume", "one", "--inline")
    last = json.loads(spent("tail", "one", "--json").stdout.splitlines()[-1])["version"]
    spent("fork", "one", "--at", str(last), "--goal", "Again", "--id", "two", "--inline")

    rows = {row["limit"]: row for row in spent.json("budget", "show", "two")["rows"]}
    assert "1" == rows["max_cost"]["of"]


async def family(shell):
    """Have a session `two` whose parent `one` is limited, too."""
    script = 'reply = [{ text = "Done." }]'
    told = {"name": "a", "provider": "scripted", "model": "m", "parameters": {"script": script}}
    limits = {"max_output_tokens": 9}
    parent = Agent(**told, limits={**limits, "max_tokens": 90_000})
    child = Agent(**told, limits={**limits, "max_tokens": 80_000})
    async with open_runtime(shell.log, on="inline") as here:
        await (await here.start(parent, "Lead", id="one", open=True)).result()
        await (await here.start(child, "Help", id="two", parent="one")).result()


def test_a_fork_of_a_child_has_no_limit_but_its_own(shell):
    asyncio.run(family(shell))
    done = shell("fork", "two", "--at", "1", "--goal", "Again", "--id", "three", "--inline")

    assert done.exit_code == 0, done.output
    assert ["two", "one"] == whose_tokens(shell, "two")
    assert ["three"] == whose_tokens(shell, "three")


def test_a_limit_that_an_agent_in_code_has_is_no_default(shell):
    asyncio.run(family(shell))

    rows = shell.json("budget", "show", "one")["rows"]

    told = {row["limit"]: row["source"] for row in rows}
    assert ("default", "the agent") == (told["max_turns"], told["max_tokens"])


def whose_tokens(shell, session):
    rows = shell.json("budget", "show", session)["rows"]
    return [row["whose"] or session for row in rows if row["limit"] == "max_tokens"]
