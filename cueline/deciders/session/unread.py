"""What a session will be once it has read its inbox."""

from collections.abc import Iterable

from cueline.deciders.session.state import SessionState
from cueline.events.inbox import PauseAsked, ResumeAsked, StopAsked


def will_stop(state: SessionState, unread: Iterable[object]) -> bool:
    """Whether the session was asked to end."""
    return state.stop is not None or any(isinstance(said, StopAsked) for said in unread)


def will_be_held(state: SessionState, unread: Iterable[object]) -> bool:
    """Whether the session is held, or will be when it has read that it is to pause."""
    said = [each for each in unread if isinstance(each, PauseAsked | ResumeAsked)]
    return isinstance(said[-1], PauseAsked) if said else state.hold is not None
