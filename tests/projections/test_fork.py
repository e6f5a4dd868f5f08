"""A fork goes on from another's past, and has spent nothing."""

from decimal import Decimal

import pytest

from cueline.events.inbox import ForkPoint
from cueline.events.message import Cost, Usage
from cueline.events.session import ModelFailed, ModelStarted, ReservationClosed
from cueline.projections.summary import Summary
from tests.projections.conftest import find_session

A = "session-default/a"


@pytest.fixture
async def forked(log, facts):
    """Return a log with a session of three turns, and a fork of it after the second."""
    await log.tell("a", facts.STARTED)
    for turn in (1, 2, 3):
        last = await log.append(A, *facts.turn(turn, "write_file", usd="0.1"))
        if turn == 2:
            (version,) = last.versions
    point = ForkPoint(stream=A, version=version, hash="ab")
    await log.ask("f", facts.ASKED.model_copy(update={"fork_of": point}))
    await log.fork("f", A, version)
    return log


async def test_a_fork_has_spent_nothing(forked):
    session = find_session(await forked.caught_up(), "f")

    assert (0, 0, 0, 0) == (
        session.turns,
        session.tool_calls,
        session.input_tokens,
        session.cost,
    )
    assert ("running", A, "Go on", 1) == (
        session.status,
        session.fork_of,
        session.goal,
        session.inbox_read,
    )


async def test_what_a_fork_inherited_is_told_apart(forked):
    session = find_session(await forked.caught_up(), "f")

    assert (2, 2, 200, 20, 14, 6, Decimal("0.2")) == (
        session.inherited_turns,
        session.inherited_tool_calls,
        session.inherited_input_tokens,
        session.inherited_output_tokens,
        session.inherited_cache_read_tokens,
        session.inherited_cache_write_tokens,
        session.inherited_cost,
    )


async def test_a_fork_of_a_fork_inherits_from_both(forked, facts):
    f = "session-default/f"
    (version,) = (await forked.append(f, *facts.turn(3, usd="0.4"))).versions
    await forked.fork("g", f, version)

    session = find_session(await forked.caught_up(), "g")

    assert (3, 2, Decimal("0.6")) == (
        session.inherited_turns,
        session.inherited_tool_calls,
        session.inherited_cost,
    )


def tried_again(facts):
    """Return a turn whose first attempt was lost, and whose second was billed and refused."""
    declined = {"usage": Usage(input=9, output=1), "cost": Cost(usd=Decimal("0.3"), prices="list")}
    closed = ReservationClosed(effect="2.m", attempt=1, outcome="estimated", usd=Decimal("0.7"))
    return [
        *(facts.requested(2), ModelStarted(effect="2.m", attempt=1)),
        ModelFailed(effect="2.m", attempt=1, kind="lost", message="nobody answered"),
        closed,
        *(facts.requested(2, attempt=2), ModelStarted(effect="2.m", attempt=2)),
        ModelFailed(effect="2.m", attempt=2, kind="declined", message="no", **declined),
        *(facts.requested(2, attempt=3), ModelStarted(effect="2.m", attempt=3)),
        facts.replied(2, "write_file", usd="0.1"),
        closed.model_copy(update={"attempt": 3, "usd": Decimal("0.2")}),
    ]


async def test_a_fork_inherits_what_its_past_had_used_wherever_it_begins(log, facts):
    past = [facts.STARTED, *facts.turn(1, "write_file", usd="0.1"), *tried_again(facts)]
    await log.tell("a", *past)
    tally = Summary()
    for version, fact in enumerate(past, start=1):
        tally = tally.after(fact, log.moment)
        await log.fork(f"f{version}", A, version)

        fork = find_session(await log.caught_up(), f"f{version}")

        assert (tally.turns, tally.tool_calls, tally.usage, tally.cost) == (
            fork.inherited_turns,
            fork.inherited_tool_calls,
            Usage(
                input=fork.inherited_input_tokens,
                output=fork.inherited_output_tokens,
                cache_read=fork.inherited_cache_read_tokens,
                cache_write=fork.inherited_cache_write_tokens,
            ),
            Decimal(fork.inherited_cost),
        )


async def test_a_fork_that_was_asked_for_names_its_parent(log, facts):
    point = ForkPoint(stream=A, version=3, hash="ab")

    db = await log.ask("f", facts.ASKED.model_copy(update={"fork_of": point}))

    assert (A, 3) == (find_session(db, "f").fork_of, find_session(db, "f").parent_version)
