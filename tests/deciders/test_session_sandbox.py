"""A session's sandbox: started for its calls, perhaps stopped while it rests."""

from decimal import Decimal

from cueline.deciders.session import Status, due, wake_at
from cueline.deciders.session.due import RunTool
from cueline.events.codes import Cause
from cueline.events.inbox import SlotOffered
from cueline.events.session import (
    SandboxAttached,
    SessionContinued,
    SessionTakenOver,
    SessionWaiting,
)
from cueline.testing.given import given
from tests.session_example import (
    NOW,
    asking,
    broken,
    later,
    received,
    returned,
    running,
    saying,
    started,
    up_to_reply,
)

_FIELDS = ("number", "place", "attached")
FULL = Cause(code="no_slot", of=Decimal(10))


def attached(number=1, lost=""):
    return SandboxAttached(number=number, place=f"p{number}", lost=lost)


def waits(*effects, seconds=60):
    return SessionWaiting(
        kind="sandbox", cause=FULL, deadline_at=later(seconds), effects=effects or ("1.0",)
    )


def calling(*tools):
    return given().when(*up_to_reply(*tools or ("shout",)))


def test_a_sandbox_is_attached_until_the_session_rests():
    """003-025, 003-046."""
    past = calling().when(attached(), running("1.0"))
    assert (1, "p1", True) == tuple(getattr(past.state.sandbox, k) for k in _FIELDS)

    rests = past.when(returned("1.0"), SessionWaiting(kind="operator", cause=Cause(code="asked")))

    assert (1, "p1", False) == tuple(getattr(rests.state.sandbox, k) for k in _FIELDS)


def test_an_idle_session_may_lose_its_sandbox():
    first = given().when(started(open=True), *up_to_reply("shout")[1:], attached())

    idle = first.when(running("1.0"), returned("1.0"), asking(2), saying(turn=2))

    assert Status.IDLE == idle.state.status
    assert not idle.state.sandbox.attached


def test_a_call_without_a_slot_waits_and_holds_no_process():
    """003-031, 003-077, I12, I14."""
    past = calling().when(waits())

    assert Status.WAITING == past.state.status
    assert ("sandbox", FULL) == (past.state.waiting.kind, past.state.waiting.cause)
    assert later(60) == wake_at(past.state)


def test_the_message_of_a_free_slot_lets_the_call_try_again():
    past = calling().when(waits(), received(2, SlotOffered(pool="main")))

    assert Status.RUNNING == past.state.status
    assert [RunTool] == [type(each) for each in due(past.state)]
    assert "waiting" != past.state.call("1.0").reach.phase


def test_the_message_changes_nothing_for_a_session_that_does_not_wait():
    past = calling().when(attached(), running("1.0"))

    assert past.state.turn == past.when(received(2, SlotOffered(pool="main"))).state.turn


def test_without_a_slot_until_the_deadline_a_person_is_asked():
    """I14."""
    past = calling().when(waits(), SessionContinued(by="deadline", at=later(60)))
    assert [RunTool] == [type(each) for each in due(past.state)]

    over = past.when(waits(seconds=120))

    assert "operator" == over.state.waiting.kind
    assert FULL == over.state.hold.cause


def test_other_calls_go_on_while_one_waits_for_its_sandbox():
    past = calling("look", "peek").when(running("1.1", "peek"), waits("1.0"))

    assert Status.RUNNING == past.state.status
    assert "sandbox" == past.when(returned("1.1")).state.waiting.kind


def test_a_fresh_sandbox_has_the_next_number():
    """003-012."""
    past = calling().when(attached(), attached(2, lost="it is gone"))

    assert (2, "p2", True) == tuple(getattr(past.state.sandbox, k) for k in _FIELDS)


def test_a_sandbox_that_comes_after_a_pause_may_be_stopped_again():
    past = calling().when(SessionWaiting(kind="operator", cause=Cause(code="asked")), attached())

    assert not past.state.sandbox.attached


def test_a_new_owner_and_a_failed_call_ask_for_the_sandbox_again():
    """003-033: it may be gone by then."""
    past = calling().when(attached(), running("1.0"))

    assert not past.when(SessionTakenOver(epoch=2, at=NOW)).state.sandbox.attached
    assert not past.when(broken("1.0", "tool_error")).state.sandbox.attached


def test_a_sandbox_that_came_is_for_all_calls_that_waited():
    past = calling("look", "peek").when(waits("1.0", "1.1"), attached())

    assert ["trying", "trying"] == [call.reach.phase for call in past.state.turn.calls]
    assert [RunTool, RunTool] == [type(each) for each in due(past.state)]
