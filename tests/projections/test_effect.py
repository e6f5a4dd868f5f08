"""The life of each model call and tool call (000-044)."""

from decimal import Decimal

import pytest

from cueline.events.codes import Cause
from cueline.events.session import (
    LostAttempt,
    ModelFailed,
    ModelReplied,
    OutcomeCameLate,
    ReservationClosed,
    SessionTakenOver,
    ToolFailed,
    ToolInDoubt,
    ToolReconciled,
    ToolReturned,
    ToolSkipped,
    ToolStarted,
)
from cueline.projections.effect import Effect
from cueline.projections.read_model import select
from cueline.projections.session import list_sessions
from tests.projections.conftest import find_session

A = "session-default/a"
RETURNED = ToolReturned(effect="1.0", attempt=1, output="ok", seconds=1.5)
DOUBT = ToolInDoubt(
    effect="1.0", attempt=1, cause=Cause(code="tool_failed", failure="lost", message="exit 137")
)


def started(attempt=1, runner="r1"):
    return ToolStarted(
        effect="1.0", attempt=attempt, tool="write_file", runner=runner, epoch=1, rule="r"
    )


def failed(retry_at=None, kind="tool_error"):
    return ToolFailed(effect="1.0", attempt=1, kind=kind, message="no", retry_at=retry_at)


def reconciled(outcome, output=""):
    return ToolReconciled(effect="1.0", outcome=outcome, by="ann", output=output)


def effects_of(db, stream):
    return select(db, Effect, "WHERE stream = ? ORDER BY requested_version, effect", [stream])


@pytest.fixture
def told(log, facts):
    """Tell a session with one call, and return that call's effect."""

    async def told(*more):
        turn = facts.turn(1, "write_file")
        db = await log.tell("a", facts.STARTED, *turn, *more)
        return effects_of(db, A)[1]

    return told


async def test_a_reply_requests_its_calls(told):
    effect = await told()

    assert ("tool", "write_file", "idempotent", "requested", 0) == (
        effect.kind,
        effect.tool,
        effect.declared,
        effect.status,
        effect.attempts,
    )
    assert f"{A}/1.0" == effect.key


async def test_a_tool_that_nobody_declared_is_told_without(log, facts):
    db = await log.tell("a", facts.STARTED, *facts.turn(1, "invented"))

    assert ("invented", "") == (effects_of(db, A)[1].tool, effects_of(db, A)[1].declared)


@pytest.mark.parametrize(
    ("facts_told", "status"),
    [
        ([started()], "started"),
        ([started(), RETURNED], "returned"),
        ([started(), failed()], "failed"),
        ([started(), failed(retry_at="2026-03-02T00:00:00Z")], "retry"),
        ([started(), failed(retry_at="2026-03-02T00:00:00Z"), started(2)], "started"),
        ([ToolSkipped(effect="1.0", reason="steered")], "skipped"),
        ([started(), DOUBT], "in_doubt"),
        ([started(), DOUBT, reconciled("happened", "it did")], "reconciled"),
        ([started(), DOUBT, reconciled("did_not_happen")], "requested"),
        ([started(), DOUBT, reconciled("unknown")], "in_doubt"),
        ([started(), DOUBT, reconciled("happened")], "reconciled"),
        (
            [started(), RETURNED, OutcomeCameLate(effect="1.0", attempt=1, outcome="ToolReturned")],
            "returned",
        ),
    ],
)
async def test_its_status_follows_its_facts(facts_told, status, told):
    assert status == (await told(*facts_told)).status


async def test_a_call_is_placed_between_start_and_end(told):
    effect = await told(started(), RETURNED)

    assert (4, 5, 6, 6) == (
        effect.requested_version,
        effect.started_position,
        effect.ended_position,
        effect.ended_version,
    )
    assert ("r1", 1.5) == (effect.runner, effect.seconds)


async def test_attempts_and_lost_ones_are_counted(told):
    lost = failed(retry_at="2026-03-02T00:00:00Z", kind="lost")

    effect = await told(started(), lost, started(2, "r2"), RETURNED)

    assert (2, 1, "r2", 5) == (
        effect.attempts,
        effect.lost,
        effect.runner,
        effect.started_position,
    )


async def test_a_lost_model_call_is_made_again(log, facts):
    attempt = LostAttempt(effect="1.m", attempt=1)
    lost = SessionTakenOver(epoch=2, lost_attempts=(attempt,), at=log.moment)
    requested, sent, replied = facts.turn(1, usd="0.2")

    db = await log.tell("a", facts.STARTED, requested, sent, lost)
    assert ("retry", 1) == (effects_of(db, A)[0].status, effects_of(db, A)[0].lost)
    db = await log.tell("a", facts.requested(1, 2), sent.model_copy(update={"attempt": 2}), replied)

    (effect,) = effects_of(db, A)
    assert ("returned", 2, 1, 100, "0.2") == (
        effect.status,
        effect.attempts,
        effect.lost,
        effect.input_tokens,
        effect.cost,
    )


async def test_a_model_call_that_is_given_up_has_failed(log, facts):
    failure = ModelFailed(effect="1.m", attempt=1, kind="auth", message="no key")

    db = await log.tell("a", facts.STARTED, facts.requested(1), failure)

    assert "failed" == effects_of(db, A)[0].status


async def test_what_a_lost_call_may_have_cost_is_told_of_it_and_of_its_session(log, facts):
    closed = ReservationClosed(effect="1.m", attempt=1, outcome="estimated", usd=Decimal("0.25"))

    db = await log.tell("a", facts.STARTED, facts.requested(1), closed)

    (effect,), session = effects_of(db, A), find_session(db, "a")
    assert ("0.25", "0.25") == (effect.cost, effect.estimated_cost)
    assert (Decimal("0.25"), Decimal("0.25")) == (session.cost, session.estimated_cost)


async def test_a_model_call_is_told_from_its_request_on(log, facts):
    db = await log.tell("a", facts.STARTED, facts.requested(1))

    (effect,) = effects_of(db, A)
    assert ("model", "requested", 2) == (effect.kind, effect.status, effect.requested_version)


async def test_a_session_counts_its_calls_in_doubt(log, facts):
    for name in ("a", "b", "c"):
        await log.tell(name, facts.STARTED, *facts.turn(1, "write_file"), started(), DOUBT)
    await log.tell("b", reconciled("happened", "it did"))
    await log.tell("c", reconciled("did_not_happen"))

    counts = {session.id: session.in_doubt for session in list_sessions(await log.caught_up())}
    assert {"a": 1, "b": 0, "c": 0} == counts


async def test_a_call_whose_request_was_emptied_is_told_all_the_same(log, facts):
    db = await log.tell("a", facts.STARTED, started(), RETURNED)

    assert [("tool", "write_file", "returned")] == [
        (effect.kind, effect.tool, effect.status) for effect in effects_of(db, A)
    ]


async def test_a_reply_without_calls_requests_nothing(log, facts):
    reply = ModelReplied(effect="1.m", attempt=1, stop_reason="end_turn")

    db = await log.tell("a", facts.STARTED, facts.requested(1), reply)

    assert (1, 0) == (len(effects_of(db, A)), find_session(db, "a").tool_calls)
