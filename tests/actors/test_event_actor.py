"""Who is behind each fact, as the audit tells it."""

import pytest

from cueline.actors.event_actor import actor_of
from cueline.deciders.approval import AUTO_APPROVER, AUTO_IN_TIME
from cueline.events.inbox import DecisionGiven
from cueline.events.session import ApprovalResolved, MessageReceived, ToolReconciled
from cueline.testing.fakes import asks_for, says
from tests.actors.session_harness import SESSION, SessionHarness
from tests.session_example import NOW


async def test_every_fact_of_a_session_has_an_actor():
    scene = SessionHarness([asks_for(("deploy", {})), says("done")])
    await scene.begin()
    await scene.decide("grant", by="ann")

    seen = [e async for e in scene.outside.store.read_all() if e.stream == SESSION]
    assert {
        "SessionStarted": "system",
        "ModelReplied": "agent",
        "MessageReceived": "user:ann",
        "ApprovalResolved": "user:ann",
        "ToolStarted": "agent",
        "ToolReturned": "runner",
    }.items() <= {event.type: event.actor for event in seen}.items()


@pytest.mark.parametrize(
    ("outcome", "by", "author"),
    [
        ("happened", "ann", "user:ann"),
        ("did_not_happen", "policy", "user:policy"),
        ("happened", "tool", "runner"),
        ("unknown", "tool", "runner"),
        ("unknown", "policy", "system"),
        ("unknown", "steer", "system"),
    ],
)
def test_whoever_settles_a_doubt_is_behind_it(outcome, by, author):
    assert author == actor_of(ToolReconciled(effect="1.0", outcome=outcome, by=by))


@pytest.mark.parametrize(
    ("verdict", "by"),
    [
        ("expired", "clock"),
        ("superseded", "deadline"),
        ("superseded", "change"),
        ("granted", AUTO_APPROVER),
        ("granted", AUTO_IN_TIME),
        ("denied", ""),
        ("denied", "agent:7f3a"),
        ("denied", "session:7f3a"),
    ],
)
def test_nobody_is_made_responsible_for_what_no_person_decided(verdict, by):
    assert "system" == actor_of(ApprovalResolved(approval="a", verdict=verdict, by=by))


@pytest.mark.parametrize(("by", "author"), [("ann", "user:ann"), ("agent:7f3a", "system")])
def test_a_decision_is_a_users_only_where_a_person_gave_it(by, author):
    given = DecisionGiven(approval="a", digest="d", verdict="deny", by=by)

    received = MessageReceived(inbox_version=2, recorded_at=NOW, message=given)

    assert author == actor_of(received)


@pytest.mark.parametrize("by", ["stop", "change", "clock"])
@pytest.mark.parametrize("verdict", ["granted", "denied"])
def test_a_person_may_be_called_like_a_reason(verdict, by):
    assert f"user:{by}" == actor_of(ApprovalResolved(approval="a", verdict=verdict, by=by))
