"""The provider of models that answer from a recording."""

from typing import Final

from cueline.events.agent_parts import PROVIDER as NAME
from cueline.providers.account import Account
from cueline.providers.provider import Capabilities, Pause, Provider
from cueline.providers.replay.model import ReplayModel, check


def make(_account: Account, _pause: Pause) -> ReplayModel:
    """Return the model of every recording."""
    return ReplayModel()


PROVIDER: Final = Provider(
    name=NAME,
    capabilities=Capabilities(images=True, files=True, thinking=True, needs_key=False),
    make=make,
    check=check,
    is_free=True,
)
