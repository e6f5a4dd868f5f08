"""`cueline policy`: whether a policy means something, and what it would have done."""

import json
import os

import pytest

STRICT = (
    'approval = "all_writes"\n\n[[rules]]\nname = "lists"\nanswer = "deny"\npaths = ["*.txt"]\n'
)


@pytest.fixture
def strict(asking):
    (asking.folder / "strict.toml").write_text(STRICT)
    return asking


def test_a_policy_that_means_something_is_shown_rule_by_rule(strict):
    done = strict("policy", "check", "strict.toml")

    assert done.exit_code == 0
    assert "strict.toml: nothing is wrong with it" in done.stdout
    assert "  ask     all_writes" in done.stdout
    assert '  deny    lists       paths = ["*.txt"]' in done.stdout


def test_the_policy_of_an_agent_file_is_looked_at_with_its_tools(asking):
    agent = asking.folder / "agent.toml"
    rule = '\n[[policy.rules]]\nname = "typo"\nanswer = "ask"\ntools = ["delet_file"]\n'
    agent.write_text(agent.read_text() + rule)

    done = asking("policy", "check", "agent.toml")

    assert done.exit_code == 1
    assert "agent.toml: key 'policy.rules.0.tools': no tool of the agent" in done.stderr


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("[[rules]]\nname = 'a'\nanswer = 'no'\n", "key 'rules.0.answer'"),
        (
            "[[rules]]\nname = 'a'\nanswer = 'ask'\npath = ['a']\n",
            "key 'rules.0.path': it is unknown",
        ),
        ("approval = 'some'\n", "key 'approval"),
        ("approval = [", "it is not TOML"),
        ("ask_from_usd = '0.01'\n", "'ask_from_usd': it is below notify_from_usd"),
    ],
)
def test_what_is_wrong_is_named_with_its_file_and_key(shell, text, told):
    (shell.folder / "p.toml").write_text(text)

    done = shell("policy", "check", "p.toml")

    assert (1, True) == (done.exit_code, "p.toml" in done.stderr), done.output
    assert told in done.stderr


def test_the_file_of_an_agent_may_be_a_pipe(shell):
    agent = (shell.folder / shell.agent(shell.hello)).read_text()
    out, into = os.pipe()
    with os.fdopen(into, "w") as file:
        file.write(agent)

    with os.fdopen(out):
        done = shell("policy", "check", f"/dev/fd/{out}")

    assert "nothing is wrong with it" in done.stdout, done.output


def test_faults_can_be_read_by_a_machine(shell):
    (shell.folder / "p.toml").write_text("ask_from_usd = '0.01'\n")

    (fault,) = shell.json("policy", "check", "p.toml")

    assert ("p.toml", "ask_from_usd") == (fault["file"], fault["key"])


def test_what_a_limit_of_money_adds_is_shown_too(asking):
    """C14."""
    agent = asking.folder / "agent.toml"
    agent.write_text(agent.read_text() + "\n[limits]\nmax_cost = '1.00'\n")

    told = asking("policy", "check", "agent.toml").stdout

    assert "usd_from" in told, told


def test_all_that_is_wrong_is_named_at_once(shell):
    (shell.folder / "p.toml").write_text(
        "[policy]\non_deny = 'ask'\nlater = 1\napproval_seconds = '15m'\n"
        "[[policy.rules]]\nname = 'a'\n[[policy.rules]]\nname = 'b'\nanswer = 'ask'\nvotes = 0\n"
    )

    found = shell.json("policy", "check", "p.toml")

    assert {
        "policy.on_deny": "'ask' is none of 'inform', 'pause' or 'cancel'",
        "policy.rules.0.answer": "it is missing",
        "policy.rules.1.votes": "0 is less than 1",
    }.items() <= {each["key"]: each["reason"] for each in found}.items()
    assert {"policy.later"} == {each["key"] for each in found if "unknown" in each["reason"]}
    assert len(found) == 4


def test_a_policy_is_tried_on_the_past_and_changes_nothing(strict):
    before = strict("audit").stdout

    done = strict("policy", "backtest", "strict.toml", "--since", "30d")

    assert done.exit_code == 0
    head, row, _ = done.stdout.splitlines()
    assert head.split()[:3] == ["WOULD", "BE", "BY"]
    assert row.split()[:6] == ["deny", "lists", "delete_file", "asked", "1", "0"]
    assert before == strict("audit").stdout


def test_the_calls_that_would_have_gone_otherwise_can_be_listed(strict):
    done = strict("policy", "backtest", "strict.toml", "--calls", "--json")

    (call,) = map(json.loads, done.stdout.splitlines())
    assert ("one", "1.0", "asked", "deny") == (
        call["session"],
        call["effect"],
        call["before"],
        call["answer"],
    )
    assert "asked -> deny (lists)" in strict("policy", "backtest", "strict.toml", "--calls").stdout
    same = strict("policy", "backtest", "agent.toml", "--calls").stdout
    assert "no call would have gone otherwise\n" == same


PLANNER = """
from cueline import tool


@tool(read_only=True)
def plan(calls: list[str]) -> str:
    return "planned"
"""
PLANS = """
[[reply]]
calls = [{ name = "plan", arguments = { calls = [] } }]

[[reply]]
text = "Done."
"""


def test_a_call_whose_own_arguments_are_empty_calls_is_judged_too(shell):
    (shell.folder / "planner.py").write_text(PLANNER)
    (shell.folder / "p.toml").write_text("[[rules]]\nname = 'none'\nanswer = 'deny'\n")
    agent = shell.agent(PLANS, tools=(f"{shell.folder}/planner.py:plan",))
    assert 0 == shell("run", "Plan", "--agent", agent, "--inline").exit_code

    (plan,) = shell.json("policy", "backtest", "p.toml")

    assert ("deny", "plan", 1) == (plan["answer"], plan["tool"], plan["ran"])


NAMED = """
from pathlib import Path
from cueline import tool

Path("ran").touch()


@tool(name="deploy")
def release() -> str:
    \"\"\"Release it.\"\"\"
    return "released"


by_hand = tool(name="by_hand")(release.function)
"""
RULES = """
[[policy.rules]]
name = "mine"
answer = "ask"
tools = ["deploy"]

[[policy.rules]]
name = "typo"
answer = "ask"
tools = ["release"]
"""


def test_a_check_knows_the_tools_of_a_file_and_runs_none_of_it(shell):
    (shell.folder / "named.py").write_text(NAMED)
    agent = shell.agent(shell.hello, tools=("named.py:release",), more=RULES)

    (fault,) = shell.json("policy", "check", agent)
    shell("policy", "backtest", agent)

    assert ("policy.rules.1.tools", "no tool of the agent is called 'release'") == (
        fault["key"],
        fault["reason"],
    )
    assert not (shell.folder / "ran").exists()


def test_a_check_says_of_which_tool_it_cannot_know_the_name(shell):
    (shell.folder / "named.py").write_text(NAMED)
    agent = shell.agent(shell.hello, tools=("named.py:by_hand",), more=RULES)

    done = shell("policy", "check", agent)

    assert 0 == done.exit_code
    assert "the names of these tools are known only when their code runs: " in done.stderr
    assert "named.py:by_hand; `tools` of rules was not checked" in done.stderr


def test_the_past_may_be_cut_short(strict):
    done = strict("policy", "backtest", "strict.toml", "--since", "2999-01-01")

    assert done.stdout == "no calls of tools were found\n"


def test_an_age_that_is_none_is_refused(strict):
    done = strict("policy", "backtest", "strict.toml", "--since", "soon")

    assert (2, True) == (done.exit_code, "'soon' is no time like 2026-01-31" in done.stderr)


def test_sums_can_be_read_by_a_machine(strict):
    (same,) = strict.json("policy", "backtest", "strict.toml")

    assert ("deny", "delete_file", 1, "0") == (
        same["answer"],
        same["tool"],
        same["calls"],
        same["stopped_cost"],
    )
