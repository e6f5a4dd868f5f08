"""A person lets a session have more."""

import pytest

from cueline.deciders.session.limit import raise_refusal
from cueline.events.codes import Refusal
from cueline.events.inbox import PauseAsked, RaiseAsked
from cueline.events.session import (
    LimitRaised,
    LimitWarned,
    MessageReceived,
    ModelRequested,
    SessionWaiting,
    ToolReturned,
)
from cueline.testing.given import given
from tests.deciders.session_at_work import turns, working
from tests.session_example import (
    agent,
    asking,
    received,
    returned,
    running,
    saying,
    started,
)


# I13: a log that was cut between a message and what follows from it.
def test_two_raises_are_applied_although_the_first_was_cut_short():
    start = given().when(started(agent(max_active_seconds=10))).facts
    wish = received(2, RaiseAsked(max_turns=60))

    past = given(*start, wish).when(received(3, RaiseAsked(max_active_seconds=20)))

    past.then(MessageReceived, LimitRaised(max_turns=60, max_active_seconds=20))
    past.when(received(4, PauseAsked())).then(MessageReceived, SessionWaiting)


def more(**limits):
    return received(2, RaiseAsked(**limits))


# 000-020: resumable after a raise, and the raise is a fact.
def test_a_raise_is_recorded_and_the_session_goes_on():
    past = working(100)

    past.when(more(max_active_seconds=200)).then(
        MessageReceived, LimitRaised(max_active_seconds=200), ModelRequested
    )


def test_a_raised_limit_is_warned_of_anew():
    past = working(100).when(more(max_active_seconds=110))

    past.then(MessageReceived, LimitRaised, LimitWarned, LimitWarned, ModelRequested)


def test_a_raise_that_is_not_enough_leaves_the_session_held():
    past = working(100).when(more(max_active_seconds=100.5))
    past.when(asking(2), saying("look", turn=2, seconds=1), running("2.0", "look"))

    past.when(returned("2.0")).then(ToolReturned, SessionWaiting)


def test_turns_can_be_raised():
    past = given().when(*turns(2, agent(max_turns=2)))

    past.when(more(max_turns=3)).then(MessageReceived, LimitRaised, ModelRequested)


@pytest.mark.parametrize(
    ("unread", "wish", "why"),
    [
        ([], {"max_turns": 60}, None),
        ([], {"max_turns": 40}, Refusal(code="not_higher", limit="max_turns", of=50)),
        ([RaiseAsked(max_turns=60)], {"max_turns": 70}, None),
        (
            [RaiseAsked(max_turns=60)],
            {"max_turns": 60},
            Refusal(code="not_higher", limit="max_turns", of=60, unread=True),
        ),
        # What the session will refuse raises nothing; what is no raise neither.
        ([RaiseAsked(max_turns=40), PauseAsked()], {"max_turns": 51}, None),
        (
            [RaiseAsked(max_turns=40)],
            {"max_turns": 45},
            Refusal(code="not_higher", limit="max_turns", of=50),
        ),
        ([RaiseAsked(max_turns=60)], {}, Refusal(code="no_limit_named")),
    ],
)
def test_a_raise_is_compared_with_those_that_are_not_read_yet(unread, wish, why):
    limits = working(10).state.limit_state.limits

    assert why == raise_refusal(limits, unread, RaiseAsked(**wish))


def test_a_raise_does_not_lift_a_pause():
    past = working(10).when(received(2, PauseAsked()), received(3, RaiseAsked(max_turns=60)))

    past.then(MessageReceived, LimitRaised(max_turns=60))
    assert "asked" == past.state.hold.cause.code


@pytest.mark.parametrize(
    ("wish", "why"),
    [
        ({"max_active_seconds": 100}, "not_higher"),
        ({"max_turns": 60, "max_active_seconds": 1}, "not_higher"),
        ({"max_wall_seconds": 100}, "no_such_limit"),
        ({"max_cost": 10}, "no_such_limit"),
        ({}, "no_limit_named"),
    ],
)
def test_a_limit_is_neither_lowered_nor_introduced(wish, why):
    past = working(10)

    past.when(more(**wish)).then_rejected(why)

    assert 50 == past.state.limit_state.limits.max_turns
