"""One row for each session.

000-033, 000-036, 000-037, 000-038, 000-039, 000-040, 000-041, 000-042, 000-044,
000-045, 000-046, 000-047, 000-049.
"""

from datetime import timedelta
from decimal import Decimal

import pytest

from cueline.events.codes import Cause
from cueline.events.inbox import MessageSent, RunnerGone, StopAsked
from cueline.events.message import Cost, Usage
from cueline.events.session import (
    LostAttempt,
    MessageReceived,
    ModelFailed,
    ModelRequested,
    RunClaimed,
    SessionCompleted,
    SessionContinued,
    SessionFailed,
    SessionIdle,
    SessionStopped,
    SessionTakenOver,
    SessionWaiting,
    ToolFailed,
    ToolInDoubt,
    ToolReconciled,
    ToolReturned,
)
from cueline.projections.cost import spent, total
from cueline.projections.session import (
    claimed_runs,
    list_sessions,
    running,
)
from tests.projections.conftest import find_run, find_session

A = "session-default/a"


def received(version, message, at):
    return MessageReceived(inbox_version=version, recorded_at=at, message=message)


def stopping(log):
    return received(2, StopAsked(), log.moment)


def waiting(kind, deadline_at=None, *, exhausted=False):
    cause = Cause(code="asked")
    return SessionWaiting(kind=kind, cause=cause, deadline_at=deadline_at, exhausted=exhausted)


async def test_a_session_that_was_asked_for_is_created(log, facts):
    db = await log.ask("a", facts.ASKED)

    session = find_session(db, "a")
    assert ("created", "editor", "scripted", "m1") == (
        session.status,
        session.agent,
        session.provider,
        session.model,
    )
    assert ("Tidy up", {"team": "docs"}, None) == (session.goal, session.labels, session.started_at)


async def test_a_session_that_was_started_is_running(log, facts):
    await log.ask("a", facts.ASKED)
    db = await log.tell("a", facts.STARTED)

    session = find_session(db, "a")
    assert ("running", 1, 1, log.moment) == (
        session.status,
        session.inbox_length,
        session.inbox_read,
        session.updated_at,
    )
    assert session.created_at < session.started_at == session.updated_at


TAKEN = SessionTakenOver(epoch=2, at="2026-03-02T00:00:00Z")
AGAIN = ModelRequested(effect="2.m", attempt=1, digest="", prefix_digest="")
ON = SessionContinued(by="message")
STATUS = [
    ([waiting("retry")], "waiting", "waiting"),
    ([waiting("approval")], "waiting", "waiting"),
    ([waiting("operator")], "waiting", "paused"),
    ([waiting("budget", exhausted=True)], "waiting", "paused"),
    ([waiting("budget")], "waiting", "waiting"),
    ([waiting("operator"), ON], "running", "running"),
    ([waiting("retry"), AGAIN], "running", "running"),
    ([SessionIdle(result="so far")], "idle", "idle"),
    ([SessionIdle(), AGAIN], "running", "running"),
    ([SessionIdle(), TAKEN], "running", "running"),
    ([SessionCompleted(result="done")], "completed", "completed"),
    ([SessionFailed(kind="auth", message="no key")], "failed", "failed"),
    ([SessionStopped(by="ann", reason="enough")], "stopped", "stopped"),
]


@pytest.mark.parametrize(("told", "status", "shown"), STATUS)
async def test_its_status_follows_its_facts(told, status, shown, log, facts):
    db = await log.tell("a", facts.STARTED, *told)

    session = find_session(db, "a")
    assert shown == session.status


async def test_what_a_session_waits_for_is_told_until_it_goes_on(log, facts):
    deadline = log.moment + timedelta(hours=1)
    db = await log.tell("a", facts.STARTED, waiting("approval", deadline))
    session = find_session(db, "a")
    assert ("approval", {"code": "asked"}, deadline) == (
        session.wait_kind,
        session.wait_cause,
        session.deadline_at,
    )

    db = await log.tell("a", ON)

    session = find_session(db, "a")
    assert (None, None, None) == (session.wait_kind, session.wait_cause, session.deadline_at)


@pytest.mark.parametrize("told", [[], [ON], [AGAIN], [TAKEN], [waiting("runner")]])
async def test_a_session_that_stops_goes_on_stopping(told, log, facts):
    db = await log.tell("a", facts.STARTED, stopping(log), *told)

    assert "stopping" == find_session(db, "a").status


async def test_a_session_that_was_stopped_has_ended(log, facts):
    stopped = SessionStopped(by="user", reason="enough")

    db = await log.tell("a", facts.STARTED, stopping(log), stopped)

    assert "stopped" == find_session(db, "a").status


async def test_a_message_alone_changes_no_status(log, facts):
    said = received(2, MessageSent(lane="note", text="Hurry"), log.moment)

    db = await log.tell("a", facts.STARTED, said)

    assert "running" == find_session(db, "a").status


@pytest.mark.parametrize(
    "later",
    [
        ON,
        AGAIN,
        TAKEN,
        waiting("retry"),
        SessionIdle(result="no"),
        SessionFailed(kind="k", message="e"),
    ],
)
async def test_a_terminal_status_and_its_result_are_final(later, log, facts):
    """I6."""
    db = await log.tell("a", facts.STARTED, SessionCompleted(result="done"), later)

    session = find_session(db, "a")
    assert ("completed", "done", None) == (session.status, session.result, session.error)
    assert session.wait_kind is None


async def test_a_failure_is_told_with_its_kind(log, facts):
    failed = SessionFailed(kind="auth", message="no key", recoverable=True)

    session = find_session(await log.tell("a", facts.STARTED, failed), "a")

    assert ("auth", "no key", True) == (session.error_kind, session.error, session.recoverable)


async def test_turns_calls_tokens_and_cost_add_up(log, facts):
    await log.tell("a", facts.STARTED)
    for turn in (1, 2, 3):
        db = await log.tell("a", *facts.turn(turn, "write_file", "read_file", usd="0.1"))

    session = find_session(db, "a")
    assert (3, 6) == (session.turns, session.tool_calls)
    assert (300, 30, 21, 9) == (
        session.input_tokens,
        session.output_tokens,
        session.cache_read_tokens,
        session.cache_write_tokens,
    )
    assert (Decimal("0.3"), 0) == (session.cost, session.unpriced)


async def test_answers_without_a_price_are_counted(log, facts):
    db = await log.tell("a", facts.STARTED, *facts.turn(1), *facts.turn(2, usd="0.5"))

    assert (Decimal("0.5"), 1) == (find_session(db, "a").cost, find_session(db, "a").unpriced)


async def test_a_failed_attempt_may_have_used_something(log, facts):
    failed = ModelFailed(
        effect="1.m",
        attempt=1,
        kind="refused",
        message="no",
        usage=Usage(input=5),
        cost=Cost(usd=Decimal("0.02"), prices="list"),
    )

    db = await log.tell("a", facts.STARTED, facts.requested(1), failed, facts.requested(1, 2))
    session = find_session(db, "a")

    assert (0, 5, Decimal("0.02")) == (session.turns, session.input_tokens, session.cost)
    assert Decimal("0.02") == total(spent(db)).cost
    assert "0.02" == db.execute("SELECT cost FROM effects").fetchone()[0]


async def test_what_was_recovered_is_counted(log, facts):
    lost = SessionTakenOver(
        epoch=2, lost_attempts=(LostAttempt(effect="1.m", attempt=1),), at=log.moment
    )
    gone = ToolFailed(effect="1.0", attempt=1, kind="lost", message="its runner died")
    doubt = ToolInDoubt(
        effect="1.1", attempt=1, cause=Cause(code="tool_failed", failure="lost", message="exit 137")
    )
    calls = facts.replied(1, "write_file", "write_file")

    db = await log.tell("a", facts.STARTED, facts.requested(1), lost, calls, gone, doubt)
    session = find_session(db, "a")
    assert (1, 2, 1, 0) == (
        session.takeovers,
        session.lost_attempts,
        session.in_doubt,
        session.reconciled,
    )

    ruled = ToolReconciled(effect="1.1", outcome="happened", by="ann", output="ok")
    session = find_session(await log.tell("a", ruled), "a")
    assert (0, 1) == (session.in_doubt, session.reconciled)


@pytest.mark.parametrize(("kind", "lost"), [("lost", 1), ("overloaded", 0)])
async def test_an_attempt_that_was_lost_is_counted_as_lost_and_no_other(kind, lost, log, facts):
    failed = ModelFailed(effect="1.m", attempt=1, kind=kind, message="", failed_at=log.moment)

    tool = ToolFailed(effect="2.0", attempt=1, kind=kind, message="")

    db = await log.tell("a", facts.STARTED, facts.requested(1), failed, tool)

    assert 2 * lost == find_session(db, "a").lost_attempts


async def test_its_epoch_is_its_last_owners(log, facts):
    await log.store.acquire(A, "host-1", 0)
    await log.store.acquire(A, "host-2", 1)
    log.appends += 1
    write = {"stream": A, "steps": [[facts.STARTED]], "expected_version": 0, "epoch": 2}
    await log.journal.append([log.write(**write)], "k")

    assert 2 == find_session(await log.caught_up(), "a").epoch


@pytest.fixture
async def many(log, facts):
    """Return read models of a waiting, a paused, a running and a completed session."""
    for name, fact in [
        ("w", waiting("retry")),
        ("p", waiting("operator")),
        ("r", ON),
        ("c", SessionCompleted(result="")),
    ]:
        db = await log.tell(name, facts.STARTED, fact)
    return db


@pytest.mark.parametrize(
    ("asked", "ids"),
    [
        ({}, ["c", "r", "p", "w"]),
        ({"limit": 2}, ["c", "r"]),
        ({"status": "running"}, ["r"]),
        ({"status": "waiting"}, ["p", "w"]),
        ({"status": "paused"}, ["p"]),
        ({"status": "failed"}, []),
        ({"agent": "editor", "status": "completed"}, ["c"]),
        ({"agent": "nobody"}, []),
    ],
)
async def test_sessions_are_listed_by_what_is_asked(asked, ids, many):
    """000-033."""
    assert ids == [session.id for session in list_sessions(many, **asked)]


@pytest.mark.parametrize("name", ["w", "session-default/w"])
async def test_a_session_is_found_by_stream_and_by_what_a_user_sees(name, many):
    assert "session-default/w" == find_session(many, name).stream


async def test_an_unknown_session_is_not_found(many):
    assert find_session(many, "nobody") is None


async def test_a_session_of_another_tenant_is_shown_with_it(log, facts):
    await log.append("session-acme/x", facts.STARTED)

    assert "acme/x" == find_session(await log.caught_up(), "session-acme/x").id


async def test_the_sessions_that_somebody_drives_are_told(many):
    assert ["session-default/r"] == running(many)


@pytest.mark.parametrize(
    "query",
    ["SELECT stream FROM sessions WHERE due_us <= 1", "SELECT stream FROM sessions WHERE id = 'a'"],
)
async def test_work_is_found_by_an_index(query, many):
    (plan,) = many.execute(f"EXPLAIN QUERY PLAN {query}").fetchall()

    assert "USING INDEX" in plan[3] or "USING COVERING INDEX" in plan[3]


async def test_a_tools_outcome_alone_changes_no_status(log, facts):
    await log.tell("a", facts.STARTED, *facts.turn(1, "write_file"), waiting("operator"))

    db = await log.tell("a", ToolReturned(effect="1.0", attempt=1, output="late"))

    assert "paused" == find_session(db, "a").status


@pytest.mark.parametrize("end", [SessionCompleted, SessionIdle])
async def test_a_result_that_lacks_something_says_so(end, log, facts):
    # C5, 004-006
    db = await log.tell("a", facts.STARTED, end(result="Most of it.", partial=True))

    assert find_session(db, "a").partial


# 001-014: also those that wait, or are being stopped.
async def test_the_claimed_runs_are_those_that_have_not_ended(log, facts):
    claim = RunClaimed(runner="r1")
    for name, *then in (
        ("claimed",),
        ("waits", waiting("approval")),
        ("stops", stopping(log)),
        ("over", SessionFailed(kind="auth", message="no key")),
    ):
        await log.tell(name, facts.STARTED, claim, *then)
    db = await log.tell("other", facts.STARTED)

    found = sorted((stream, runner) for stream, runner, _ in claimed_runs(db))

    assert [(f"session-default/{name}", "r1") for name in ("claimed", "stops", "waits")] == found


@pytest.mark.parametrize(
    ("runner", "graceful", "status"),
    [("r1", True, "queued"), ("r1", False, "claimed"), ("r2", True, "claimed")],
)
async def test_a_run_is_queued_as_soon_as_its_runner_has_left(runner, graceful, status, log, facts):
    await log.tell("a", facts.STARTED, RunClaimed(runner="r1"))
    gone = RunnerGone(runner=runner, reason="`cueline up` was taken down", graceful=graceful)
    await log.append("inbox-default/a", gone)
    await log.views.catch_up(log.store)

    assert status == find_run(log.views.db, "a").status


async def test_a_run_whose_runner_has_left_is_claimed_by_the_next_one(log, facts):
    await log.tell("a", facts.STARTED, RunClaimed(runner="r1"))
    gone = RunnerGone(runner="r1", reason="it was retired", graceful=True)
    await log.append("inbox-default/a", gone)
    db = await log.tell("a", RunClaimed(runner="r2"))

    found = find_run(db, "a")
    assert ("claimed", "r2") == (found.status, found.runner)
