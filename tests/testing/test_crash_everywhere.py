"""The crash kit for users: it passes good agents, and says what is wrong with bad ones."""

from collections import Counter
from dataclasses import replace
from decimal import Decimal

import pytest

from cueline import Agent, Limits
from cueline.errors import ConfigError
from cueline.events.session import ToolReturned
from cueline.testing.crash_everywhere import CrashCase, crash_everywhere, run_inline, with_script
from cueline.testing.crash_findings import problems
from cueline.testing.crash_point import CrashPoint
from tests.testing import shop

pytest_plugins = ["cueline.testing.pytest_plugin"]


@pytest.fixture(autouse=True)
def till(tmp_path, monkeypatch):
    monkeypatch.setenv("SHOP_TILL", str(tmp_path / "till"))


def killed(tool, **options):
    agent, goal, script = shop.shopper(tool, **options.pop("fields", {}))
    said = {"effects": shop.takings, "reset": shop.empty}
    return crash_everywhere(agent, goal, script, **said, **options)


def problem_of(tool, **options):
    with pytest.raises(AssertionError) as error:
        killed(tool, **options)
    return str(error.value)


@pytest.mark.parametrize("tool", [shop.pay_by_key, shop.pay_and_ask], ids=lambda tool: tool.name)
def test_an_agent_whose_tools_keep_their_word_passes(tool):
    kills = killed(tool)

    assert len(kills) >= 50
    assert any(kill.startswith("after the tool") for kill in kills)
    assert any("(host);" in kill for kill in kills)


def test_a_tool_that_runs_twice_is_named_with_its_effects_and_what_to_do():
    told = problem_of(shop.pay_twice)

    assert told.startswith("1 problem in 50 kills")
    assert "pay_twice ran twice:" in told
    assert "without a kill  ['paid 3']" in told
    assert "now             ['paid 3', 'paid 3']" in told
    assert "killed after the tool pay_twice (host and runner); last event ToolStarted" in told
    assert "pass `context.key` to the receiver" in told


def test_a_tool_whose_outcome_is_lost_is_named_with_what_to_do():
    told = problem_of(shop.pay)

    assert (
        "the outcome of pay (call 2.0) was lost: it may have happened, and is not repeated" in told
    )
    assert "killed before the tool pay (host and runner); last event ToolStarted" in told
    assert "declare `idempotent=True`" in told
    assert "may_be_in_doubt=['pay']" in told


@pytest.mark.parametrize("policy", ["ask", "tell"])
def test_a_tool_may_be_in_doubt_if_a_person_can_answer(policy):
    assert killed(shop.pay, may_be_in_doubt=["pay"], fields={"policy": {"in_doubt": policy}})


def test_a_receiver_that_refuses_a_used_key_loses_the_outcome():
    told = problem_of(shop.pay_once)

    assert "the outcome of pay_once (call 2.0) was lost: it returned, and run again" in told
    assert "this key was used" in told
    assert "return what the first call returned" in told


def test_a_wrong_reconcile_loses_an_effect():
    told = problem_of(shop.pay_and_guess)

    assert "an effect of pay_and_guess was lost:" in told
    assert "now             []" in told
    assert "let its `reconcile` return" in told


def test_approvals_are_granted():
    script = '[[reply]]\ncalls = [{ name = "refund" }]\n[[reply]]\ntext = "Done."'

    said = {"effects": shop.takings, "reset": shop.empty}
    assert crash_everywhere(Agent(name="giver", tools=[shop.refund]), "Refund", script, **said)


def test_budgets_are_kept():
    fields = {"limits": Limits(max_cost=Decimal(1)), "provider": "ollama", "model": "m"}
    fields["prices"] = {"ollama/m": {"input": "1", "output": "1"}}

    kills = killed(shop.pay_by_key, fields=fields)

    assert any(kill.startswith("after CostReserved") for kill in kills)


def test_waits_for_the_model_take_no_time():
    fail = (
        '[[reply]]\nturn = 1\nattempt = 1\nfail = { kind = "rate_limited", retry_after = 3000 }\n'
    )

    assert crash_everywhere(
        Agent(name="patient"), "Go", f'{fail}[[reply]]\nturn = 1\ntext = "Done."'
    )


async def course():
    """Return a session that paid, and what its tools declare."""
    agent, goal, script = shop.shopper(shop.pay, limits=Limits(max_tokens=10_000))
    case = CrashCase(
        spec=with_script(agent, script).spec(),
        goal=goal,
        reset=shop.empty,
        effects=shop.takings,
        allowed=(),
    )
    return await run_inline(case, CrashPoint(), host_alone=False), case.declared


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda whole: {"early": ["2.0"]}, "I2: 2.0 began before the log had its start"),
        (lambda whole: {"starts": Counter({"2.0": 2})}, "I5: pay (call 2.0) ran twice"),
        (lambda whole: {"budget": whole.budget[:2]}, "I8: session-default/crash Amount("),
        (lambda whole: {"facts": without_outcome(whole)}, "the call 2.0 of pay was lost"),
        (lambda whole: {"facts": whole.facts[:-1]}, "the session was lost: it ended with"),
    ],
)
async def test_errors_of_cueline_are_found_too(change, said):
    (whole, _), declared = await course()

    (problem,) = problems(replace(whole, **change(whole)), whole, declared, ())

    assert problem.what.startswith(said)


def without_outcome(whole):
    return [f for f in whole.facts if not isinstance(f, ToolReturned) or f.effect != "2.0"]


def test_a_session_that_does_not_end_by_itself_is_refused():
    with pytest.raises(AssertionError, match="without a kill it does not end"):
        crash_everywhere(Agent(name="mute"), "Go", '[[reply]]\nfail = { kind = "auth" }')


def test_tools_that_need_processes_are_refused():
    child = Agent(name="child", provider="ollama", model="m")
    parent = Agent(name="parent", tools=[child])

    with pytest.raises(ConfigError, match="processes=True"):
        crash_everywhere(parent, "Go", '[[reply]]\ntext = "Done."')


def test_processes_are_killed_and_an_agent_whose_tools_keep_their_word_passes(crash_everywhere):
    agent, goal, script = shop.shopper(shop.pay_by_key)

    said = {"effects": shop.takings, "reset": shop.empty, "processes": True, "sample": 1}
    (kill,) = crash_everywhere(agent, goal, script, **said)

    assert kill.startswith("by SIGKILL after an effect; last event ")


def test_a_tool_that_runs_twice_after_the_kill_of_a_process_is_named(crash_everywhere):
    agent = Agent(name="payer", tools=[shop.pay_slowly])
    script = """
    [[reply]]
    calls = [{ name = "pay_slowly", arguments = { amount = 3 } }]
    [[reply]]
    text = "Done."
    """

    said = {"effects": shop.takings, "reset": shop.empty, "processes": True, "sample": 1}
    with pytest.raises(AssertionError) as error:
        crash_everywhere(agent, "Pay", script, **said)

    assert "pay_slowly ran twice:" in str(error.value)
    assert "killed by SIGKILL after an effect; last event ToolStarted" in str(error.value)
