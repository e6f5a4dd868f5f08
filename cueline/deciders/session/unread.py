"""The state of a session after it reads its inbox."""

from collections.abc import Iterable
from itertools import chain

from cueline.deciders.session.state import SessionState
from cueline.events.inbox import PauseAsked, ResumeAsked, SecretsWaived, StopAsked


def will_stop(state: SessionState, unread: Iterable[object]) -> bool:
    """Whether the session is stopping, or will be."""
    return state.stop is not None or any(isinstance(said, StopAsked) for said in unread)


def waived_secrets(state: SessionState, unread: Iterable[object]) -> set[str]:
    """Return the secrets that people waived."""
    before = () if state.setup is None else state.setup.waived
    said = [each.names for each in unread if isinstance(each, SecretsWaived)]
    return {*before, *chain.from_iterable(said)}


def will_be_held(state: SessionState, unread: Iterable[object]) -> bool:
    """Whether the session is paused, or will be."""
    said = [each for each in unread if isinstance(each, PauseAsked | ResumeAsked)]
    return isinstance(said[-1], PauseAsked) if said else state.hold is not None
