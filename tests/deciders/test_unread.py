"""What a session will be once it has read its inbox."""

import pytest
from msgspec.structs import replace

from cueline.deciders.session import session_of
from cueline.deciders.session.state import Hold, Stop
from cueline.deciders.session.unread import will_be_held, will_stop
from cueline.events.inbox import MessageSent, PauseAsked, ResumeAsked, StopAsked

FREE = session_of("session-default/one")
HELD = replace(FREE, hold=Hold("asked"))
HELLO = MessageSent(lane="note", text="Hello")


@pytest.mark.parametrize(
    ("state", "unread", "held"),
    [
        (FREE, [], False),
        (HELD, [HELLO], True),
        (FREE, [PauseAsked(), HELLO], True),
        (FREE, [PauseAsked(), ResumeAsked()], False),
        (HELD, [ResumeAsked()], False),
        (HELD, [ResumeAsked(), PauseAsked()], True),
    ],
)
def test_the_last_word_says_whether_it_is_held(state, unread, held):
    assert held is will_be_held(state, unread)


@pytest.mark.parametrize(
    ("state", "unread", "stops"),
    [
        (FREE, [HELLO], False),
        (FREE, [StopAsked(), HELLO], True),
        (replace(FREE, stop=Stop("user", "enough")), [], True),
    ],
)
def test_who_was_asked_to_stop_stops(state, unread, stops):
    assert stops is will_stop(state, unread)
