"""What people were asked, and what they said: the history of approvals (003-026, 004-023)."""

from datetime import timedelta
from decimal import Decimal

import pytest

from cueline.events.approval import (
    ApprovalDenied,
    ApprovalExpired,
    ApprovalGranted,
    ApprovalOpened,
    ApprovalSuperseded,
    VoteGiven,
)
from cueline.events.inbox import DecisionGiven
from cueline.events.session import MessageReceived, SessionStopped
from cueline.projections.approval import pending_approvals

A = "session-default/a"


@pytest.fixture
def opened(log):
    """Open an approval that expires after so many seconds, and return what facts are told."""

    async def opened(name, *more, seconds=300, session=A, auto=None):
        fact = ApprovalOpened(
            session=session,
            effect="1.0",
            digest="d1",
            question="may_it_run",
            tool="write_file",
            arguments={"path": "é"},
            summary="writes é",
            rule="sensitive",
            epoch=1,
            preview="+é",
            usd=Decimal("0.75"),
            votes=2,
            opened_at=log.moment,
            deadline_at=log.moment + timedelta(seconds=seconds),
            auto_at=None if auto is None else log.moment + timedelta(seconds=auto),
        )
        await log.append(f"approval-default/{name}", fact, *more, expected=0)
        return await log.caught_up()

    return opened


async def test_what_is_granted_by_itself_is_as_urgent_as_that(opened, log):
    await opened("a.1.0.1", seconds=60)
    soon = log.moment + timedelta(seconds=3)

    found = pending_approvals(await opened("a.1.1.1", auto=3))

    assert [("a.1.1.1", soon), ("a.1.0.1", None)] == [(each.id, each.auto_at) for each in found]


async def test_a_question_waits_for_a_person(opened, log):
    deadline = log.moment + timedelta(seconds=300)

    (approval,) = pending_approvals(await opened("a.1.0.1"))

    assert ("a.1.0.1", "a", "1.0", "write_file", "writes é", "d1", deadline) == (
        approval.id,
        approval.session,
        approval.effect,
        approval.tool,
        approval.summary,
        approval.digest,
        approval.deadline_at,
    )
    assert {"path": "é"} == approval.arguments
    assert ("+é", Decimal("0.75"), 2) == (
        approval.preview,
        approval.estimated_cost,
        approval.votes_needed,
    )


@pytest.mark.parametrize(
    ("verdict", "expected"),
    [
        (ApprovalGranted(by="ann", note="fine"), ("granted", "ann", "fine")),
        (ApprovalDenied(by="bob", note="no"), ("denied", "bob", "no")),
        (ApprovalExpired(at="2026-03-02T00:00:00Z"), ("expired", "", "")),
        (ApprovalSuperseded(reason="stop"), ("superseded", "", "stop")),
    ],
)
async def test_a_verdict_ends_the_wait(verdict, expected, opened):
    db = await opened("a.1.0.1", verdict)

    found = db.execute("SELECT status, by, note FROM approvals WHERE id = 'a.1.0.1'").fetchone()
    assert ([], expected) == (pending_approvals(db), found)


async def test_what_was_asked_for_and_what_was_allowed_are_both_told(opened):
    db = await opened("a.1.0.1", ApprovalGranted(by="ann", edit={"path": "è"}, digest="d2"))

    found = db.execute("SELECT arguments_json, edit_json FROM approvals").fetchone()
    assert ('{"path": "é"}', '{"path": "è"}') == found


async def test_a_vote_alone_does_not_end_it(opened, log):
    vote = VoteGiven(verdict="grant", by="ann", message="inbox-default/a@2", recorded_at=log.moment)

    (approval,) = pending_approvals(await opened("a.1.0.1", vote))

    assert 1 == approval.votes


async def test_the_most_urgent_comes_first(opened):
    await opened("a.1.0.1", seconds=300)
    db = await opened("b.1.0.1", seconds=10, session="session-default/b")

    assert ["b.1.0.1", "a.1.0.1"] == [approval.id for approval in pending_approvals(db)]


async def test_nobody_is_asked_about_a_session_that_ended(opened, log):
    # It crashed after the gate had asked and before it knew, and was stopped then.
    await log.tell("a", SessionStopped(by="user", reason="enough"))

    assert [] == pending_approvals(await opened("a.1.0.1"))


async def test_what_was_decided_waits_until_it_is_read(opened, log):
    await opened("a.1.0.1")
    decision = DecisionGiven(approval="a.1.0.1", digest="d1", verdict="grant", by="ann")

    (approval,) = pending_approvals(await log.ask("a", decision))
    assert ("grant", "ann") == (approval.given, approval.given_by)

    read = MessageReceived(inbox_version=1, recorded_at=log.moment, message=decision)
    (approval,) = pending_approvals(await log.tell("a", read))
    assert (None, None) == (approval.given, approval.given_by)


async def test_what_several_people_decided_waits_until_each_is_read(opened, log):
    await opened("a.1.0.1")
    told = []
    given = [
        DecisionGiven(approval="a.1.0.1", digest="d1", verdict=verdict, by=by)
        for verdict, by in (("grant", "ann"), ("grant", "anna"), ("deny", "an"))
    ]
    read = [
        MessageReceived(inbox_version=version, recorded_at=log.moment, message=decision)
        for version, decision in enumerate(given, 1)
    ]

    for step in (log.ask("a", each) for each in given):
        told += pending_approvals(await step)
    for step in (log.tell("a", each) for each in read):
        told += pending_approvals(await step)

    grants = [("grant", "ann"), ("grant", "ann, anna")]
    assert [*grants, *[("deny", "an")] * 3, (None, None)] == [(a.given, a.given_by) for a in told]


async def test_the_first_of_two_people_is_read_before_the_second(opened, log):
    await opened("a.1.0.1")
    ann, bob = (
        DecisionGiven(approval="a.1.0.1", digest="d1", verdict="grant", by=by)
        for by in ("ann", "bob")
    )
    await log.ask("a", ann)
    await log.ask("a", bob)

    read = MessageReceived(inbox_version=1, recorded_at=log.moment, message=ann)
    (approval,) = pending_approvals(await log.tell("a", read))

    assert ("grant", "bob") == (approval.given, approval.given_by)


@pytest.mark.parametrize("change", [{"digest": "d2"}, {"approval": "b.1.0.1"}])
async def test_a_decision_on_something_else_changes_nothing(opened, log, change):
    await opened("a.1.0.1")
    decision = DecisionGiven(approval="a.1.0.1", digest="d1", verdict="grant", by="ann")

    (approval,) = pending_approvals(await log.ask("a", decision.model_copy(update=change)))

    assert approval.given is None
