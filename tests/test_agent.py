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
