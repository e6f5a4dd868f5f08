"""Children that go on by themselves after their call has timed out: `on_timeout = "leave"`."""

import pytest

from cueline.deciders.child_text import callback_of
from cueline.deciders.session import command_of, wake_at
from cueline.deciders.session.children import newly_stopped
from cueline.events.inbox import StopAsked
from cueline.events.session import (
    MessageReceived,
    MessageRefused,
    ModelReplied,
    ModelRequested,
    SessionCompleted,
    SessionContinued,
    SessionStopped,
    ToolFailed,
)
from tests.deciders.test_session_children import CHILD, LEAD, calling, deadline, delegated, ended
from tests.session_example import asking, later, received, saying

LEAVES = LEAD.model_copy(
    update={"tools": tuple(t.model_copy(update={"on_timeout": "leave"}) for t in LEAD.tools)}
)


def left(mode="sync"):
    """Return a session whose child did not end in time."""
    past = calling("helper", spec=LEAVES).when(delegated(mode=mode))
    return past.when(SessionContinued(by="deadline", at=later(600)))


# I14
def test_a_call_ends_at_its_deadline_and_the_child_goes_on():
    past = calling("helper", spec=LEAVES).when(delegated())
    before = past.state

    past.when(deadline(600)).then(SessionContinued, ToolFailed, ModelRequested)

    failed = past.facts[-2]
    assert ("child_timeout", CHILD) == (failed.kind, failed.child)
    assert "session 1.1.0 did not end in time; it goes on, and you get its end" == failed.message
    assert [] == newly_stopped(before, past.state)
    assert wake_at(past.state) is None


def test_the_late_end_of_a_child_is_a_message_to_the_model():
    past = left().when(asking(2))

    past.when(received(2, ended(text="Seen."))).then(MessageReceived)
    late = past.facts[-1]
    past.when(saying(turn=2)).then(ModelReplied, ModelRequested)

    assert late.late
    assert received(2, ended(text="Seen.")) == command_of(late)
    assert callback_of(late) == late.message
    assert (2,) == past.facts[-1].messages
    assert () == past.state.children


def test_a_time_in_which_a_person_is_asked_does_not_count():
    past = calling("helper", spec=LEAVES).when(delegated())

    past.when(deadline(600, waited=100))

    assert later(700) == wake_at(past.state)
    assert not past.state.children[0].left


def test_a_session_does_not_wait_for_a_child_that_goes_on_by_itself():
    past = left().when(asking(2), saying(turn=2))
    assert isinstance(past.facts[-1], SessionCompleted)

    past.when(received(2, ended(text="Seen."))).then(MessageRefused)

    assert "session_ended" == past.facts[-1].refusal.code


# 003-003
def test_a_stopped_session_stops_it_too_and_does_not_wait():
    past = left().when(asking(2))
    before = past.state

    past.when(saying("look", turn=2), received(2, StopAsked()))

    assert [CHILD] == newly_stopped(before, past.state)
    assert isinstance(past.facts[-1], SessionStopped)


def test_a_child_with_a_callback_is_waited_for_until_its_deadline():
    past = calling("helper", spec=LEAVES).when(delegated(mode="async_callback"))
    past.when(asking(2), saying(turn=2))
    assert later(600) == past.state.waiting.deadline_at

    past.when(deadline(600))

    assert isinstance(past.facts[-1], SessionCompleted)


@pytest.mark.parametrize("mode", ["async_callback", "async_poll"])
def test_the_end_of_a_child_that_no_call_waited_for_is_not_late(mode):
    past = left(mode).when(asking(2), received(2, ended(mode=mode)))

    assert not past.facts[-1].late
