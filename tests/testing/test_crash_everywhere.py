"""The crash kit for users: it passes good agents, and says what is wrong with bad ones."""

from decimal import Decimal

import pytest

from cueline import Agent, Limits
from cueline.errors import ConfigError
from cueline.testing.crash_everywhere import crash_everywhere
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

    assert "the outcome of pay (call 2.0) was lost: a person has to say it" in told
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
