"""A fork goes on from another's past, and has spent nothing."""

import pytest

from cueline.events.inbox import ForkPoint
from cueline.projections.session import find_session

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

    assert (0, 0, 0, "0") == (
        session.turns,
        session.tool_calls,
        session.input_tokens,
        session.cost,
    )
    assert ("running", A, "Go on", 1) == (
        session.status,
        session.parent,
        session.goal,
        session.inbox_read,
    )


async def test_what_a_fork_inherited_is_told_apart(forked):
    session = find_session(await forked.caught_up(), "f")

    assert (2, 2, 200, 20, 14, 6, "0.2") == (
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

    assert (3, 2, "0.6") == (
        session.inherited_turns,
        session.inherited_tool_calls,
        session.inherited_cost,
    )


async def test_a_fork_that_was_asked_for_names_its_parent(log, facts):
    point = ForkPoint(stream=A, version=3, hash="ab")

    db = await log.ask("f", facts.ASKED.model_copy(update={"fork_of": point}))

    assert (A, 3) == (find_session(db, "f").parent, find_session(db, "f").parent_version)
