"""The provider of models that answer from a file."""

from typing import Final

from cueline.events.agent import AgentSpec
from cueline.providers.account import Account
from cueline.providers.provider import Capabilities, Pause, Provider
from cueline.providers.scripted.model import ScriptedModel, record_script, script_of


def make(_account: Account, pause: Pause) -> ScriptedModel:
    """Return the model of every script."""
    return ScriptedModel(pause)


def check(agent: AgentSpec) -> None:
    """Check that the script of *agent* can be read.

    Raises:
        ConfigError: correct the file, or the key that it names.
    """
    script_of(agent)


PROVIDER: Final = Provider(
    name="scripted",
    capabilities=Capabilities(thinking=True, needs_key=False),
    make=make,
    check=check,
    is_free=True,
    record_file=record_script,
)
