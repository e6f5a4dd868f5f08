"""An agent file, and what its author is told."""

import pytest

from cueline.agent import Agent
from cueline.errors import ConfigError


def test_a_typo_in_a_key_that_is_needed_is_named(tmp_path):
    file = tmp_path / "agent.toml"
    file.write_text('name = "clerk"\nprovidr = "scripted"\nmodel = "script.toml"\n')

    with pytest.raises(ConfigError, match="unknown key 'providr'"):
        Agent.from_file(file)


def test_a_price_list_is_read_exactly(tmp_path):
    file = tmp_path / "agent.toml"
    file.write_text(
        'name = "clerk"\nprovider = "scripted"\nmodel = "script.toml"\n'
        '[prices."scripted/*"]\ninput = "3.10"\noutput = 15\n'
    )

    price = Agent.from_file(file).prices["scripted/*"]

    assert ("3.10", "15") == (str(price.input), str(price.output))


def test_a_typo_in_a_price_is_named_with_the_keys_that_are_known(tmp_path):
    file = tmp_path / "agent.toml"
    file.write_text(
        'name = "clerk"\nprovider = "scripted"\nmodel = "script.toml"\n'
        '[prices."scripted/*"]\ninput = "3.00"\noutputs = 15\n'
    )

    with pytest.raises(
        ConfigError, match=r"known in .* are cache_read, cache_write, input, output"
    ):
        Agent.from_file(file)


# C14: with a limit of money, costs are asked about, too, unless the file says otherwise.
@pytest.mark.parametrize(
    ("limits", "policy", "approval"),
    [
        ({}, {}, ("sensitive",)),
        ({"max_cost": "2.50"}, {}, ("sensitive", "cost")),
        ({"max_cost": "2.50"}, {"approval": "off"}, ("off",)),
        ({"max_cost": "2.50"}, {"in_doubt": "tell"}, ("sensitive", "cost")),
    ],
)
def test_a_limit_of_money_brings_the_rules_of_cost(limits, policy, approval):
    agent = Agent.model_validate(
        {"name": "a", "provider": "scripted", "model": "m", "limits": limits, "policy": policy}
    )

    assert approval == agent.spec().policy.approval


def test_a_policy_that_cannot_be_meant_is_refused_with_its_key():
    policy = {"rules": [{"name": "r", "answer": "ask", "tools": ["nothing_like_it"]}]}
    agent = Agent.model_validate(
        {"name": "a", "provider": "scripted", "model": "m", "policy": policy}
    )

    with pytest.raises(ConfigError, match=r"policy\.rules\.0\.tools.*no tool of the agent"):
        agent.spec()
