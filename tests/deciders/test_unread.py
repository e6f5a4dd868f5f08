"""What a session will be once it has read its inbox."""

import pytest
from msgspec.structs import replace

from cueline.deciders.session import session_of
from cueline.deciders.session.messages import waived_secrets, will_be_held, will_stop
from cueline.deciders.session.state import SessionHold, Stop
from cueline.events.inbox import MessageSent, PauseAsked, ResumeAsked, SecretsWaived, StopAsked
from cueline.testing.given import given
from tests.session_example import received, started

FREE = session_of("session-default/one")
HELD = replace(FREE, hold=SessionHold("asked"))
WAIVED = SecretsWaived(names=("TOKEN",), by="ann")
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


def test_a_secret_is_waived_as_soon_as_that_is_in_the_inbox_and_from_then_on():
    later = SecretsWaived(names=("TOKEN", "KEY"), by="bob")
    past = given(started()).when(received(2, WAIVED))

    assert set() == waived_secrets(FREE, [HELLO])
    assert {"TOKEN"} == waived_secrets(FREE, [WAIVED])
    assert {"TOKEN"} == waived_secrets(past.state, [])
    assert ("TOKEN", "KEY") == past.when(received(3, later)).state.setup.waived
