"""What a session owes the outside world, in short."""

from cueline.deciders.session import due
from cueline.deciders.session.due import RunTool


def owed(past):
    """Return the kinds of what is due."""
    return [type(effect) for effect in due(past.state)]


def runs(past):
    """Return the calls that are due to run."""
    return [effect.effect for effect in due(past.state) if isinstance(effect, RunTool)]
