"""Who is told of a question, and when (000-067)."""

import pytest

from cueline.deciders.session import Status, due, wake_at
from cueline.deciders.session.due import NotifyPeople
from cueline.events.agent import Hook
from cueline.events.inbox import StopAsked
from cueline.events.session import (
    PeopleNotified,
    SessionWaiting,
)
from cueline.testing.given import given
from tests.deciders.policy_session import asked, policy, resolved, rule
from tests.session_example import (
    decided,
    later,
    question,
    received,
    running,
    said,
    up_to_reply,
)

HOOKS = (
    Hook(on="reminder", command=("mail",), after_seconds=60),
    Hook(on="asked", command=("mail",)),
    Hook(on="notify", command=("mail",)),
)


def told(hook, approval="1.1.0.1", effect="1.0"):
    return PeopleNotified(effect=effect, approval=approval, hook=hook, at=later(0))


def reminders(past):
    return [effect for effect in due(past.state) if isinstance(effect, NotifyPeople)]


# 000-067: channels; the times are those of the question, and survive every restart.
def test_people_are_told_of_a_question_at_once_and_again_later():
    past = asked(hooks=HOOKS, approval_seconds=300)

    assert [(1, None), (0, later(60))] == [(each.hook, each.at) for each in reminders(past)]
    assert Status.RUNNING is past.state.status
    past.when(told(1)).then(PeopleNotified, SessionWaiting)
    assert later(60) == wake_at(past.state) == past.state.waiting.deadline_at
    past.when(told(0))
    assert [] == reminders(past)
    assert later(300) == wake_at(past.state)


def test_others_are_told_when_a_question_is_escalated():
    past = asked(hooks=HOOKS, approval_seconds=300, on_expiry="escalate")
    past.when(told(1), told(0), resolved("expired", "clock"), question("1.0", "1.1.0.2"))

    assert ["1.1.0.2", "1.1.0.2"] == [each.approval for each in reminders(past)]


def test_people_are_told_of_a_call_that_goes_on():
    spec = policy(hooks=HOOKS, rules=(rule("notify", tools=("look",)),))
    past = given().when(*up_to_reply("look", spec=spec))

    assert [] == reminders(past)
    past.when(running("1.0", "look"))
    assert [NotifyPeople("1.0", "", 2, None)] == reminders(past)
    past.when(told(2, approval=""))
    assert [] == reminders(past)


@pytest.mark.parametrize("message", [said(2, lane="steer"), received(2, StopAsked())])
def test_no_hook_runs_for_a_call_that_is_over(message):
    past = asked(hooks=HOOKS).when(message)

    assert [] == reminders(past)


def test_no_hook_runs_for_an_answered_question():
    past = asked(hooks=HOOKS).when(decided(2, "1.1.0.1", "granted"))

    assert [] == reminders(past)
