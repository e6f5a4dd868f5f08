"""An agent file, and what its author is told."""

import pytest

from cueline.agent import Agent
from cueline.errors import ConfigError


def test_a_typo_in_a_key_that_is_needed_is_named(tmp_path):
    file = tmp_path / "agent.toml"
    file.write_text('name = "clerk"\nprovidr = "scripted"\nmodel = "script.toml"\n')

    with pytest.raises(ConfigError, match="unknown key 'providr'"):
        Agent.from_file(file)
