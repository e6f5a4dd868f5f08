"""The facets of every event."""

import pytest

from cueline.events.approval import ApprovalOpened, ApprovalSuperseded
from cueline.events.inbox import PauseAsked
from cueline.events.session import (
    ApprovalRequested,
    ApprovalResolved,
    PeopleNotified,
    ToolReturned,
    ToolStarted,
)
from cueline.projections.audit import audit

A = "session-default/a"


@pytest.fixture
async def db(log, facts):
    """Return read models of a session with inbox and approval, and of another stream."""
    await log.ask("a", facts.ASKED)
    call = ToolStarted(effect="1.0", attempt=1, tool="write_file", runner="r1", epoch=1, rule="r")
    result = ToolReturned(effect="1.0", attempt=1, output="ok")
    await log.tell("a", facts.STARTED, *facts.turn(1, "write_file"), call, result)
    opened = ApprovalOpened(
        session=A,
        effect="1.0",
        digest="d1",
        question="may_it_run",
        tool="write_file",
        arguments={},
        summary="",
        epoch=1,
        opened_at=log.moment,
        deadline_at=log.moment,
    )
    ended = ApprovalSuperseded(reason="stop")
    await log.append("approval-default/a.1.0.1", opened, ended, expected=0)
    await log.append("runner-default/r1", PauseAsked())
    return await log.ask("b", PauseAsked())


def types(events):
    return [event.type for event in events]


# 002-015
async def test_every_event_of_the_log_is_there(db, log):
    events = audit(db)

    assert list(range(1, await log.store.last_position() + 1)) == [e.position for e in events]
    assert log.moment == events[-1].recorded_at


async def test_inbox_and_approvals_belong_to_their_session(db):
    assert [
        *("StartAsked", "SessionStarted", "ModelRequested", "ModelStarted", "ModelReplied"),
        *("ToolStarted", "ToolReturned", "ApprovalOpened", "ApprovalSuperseded"),
    ] == types(audit(db, session=A))


async def test_what_a_tool_did_is_found_by_its_name(db):
    assert ["ToolStarted", "ToolReturned", "ApprovalOpened", "ApprovalSuperseded"] == types(
        audit(db, tool="write_file")
    )


async def test_questions_about_a_call_are_found_by_its_tool(db, log):
    asked = ApprovalRequested(effect="1.0", approval="a.1.0.1", digest="d1", deadline_at=log.moment)
    hook = PeopleNotified(effect="1.0", approval="a.1.0.1", hook=0, at=log.moment)
    said = ApprovalResolved(approval="a.1.0.1", verdict="granted", by="ann")
    other = ApprovalResolved(approval="a.7.0.1", verdict="granted", by="ann")

    db = await log.tell("a", asked, hook, said, other)

    assert ["ApprovalRequested", "PeopleNotified", "ApprovalResolved"] == types(
        audit(db, tool="write_file")
    )[-3:]


@pytest.mark.parametrize("actor", ["user", "user:ann"])
async def test_who_caused_it_may_be_asked_by_kind_or_by_name(actor, db):
    assert ["StartAsked", "PauseAsked"] == types(audit(db, actor=actor))


@pytest.mark.parametrize("actor", ["user:bob", "use", "ann"])
async def test_others_caused_nothing(actor, db):
    assert [] == audit(db, actor=actor)


async def test_events_are_told_by_type_and_time(db):
    (started,) = audit(db, type="ToolStarted")

    between = audit(db, since=started.recorded_at, until=started.recorded_at)

    assert types(audit(db))[1:7] == types(between)


async def test_no_more_are_told_than_asked_for_and_these_are_the_newest(db):
    assert ["PauseAsked", "PauseAsked"] == types(audit(db, limit=2))
    assert [0, 1] == [e.position - audit(db)[-2].position for e in audit(db, limit=2)]


async def test_facets_hold_nothing_that_was_said(db):
    assert "Tidy up" not in str(audit(db))
