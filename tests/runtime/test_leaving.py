"""A runtime that is left, in whatever way."""

import asyncio

import pytest
from anyio import CancelScope

import cueline
from cueline.stores.waiting import take_turns
from cueline.testing.wait import await_until
from tests.scripted import HELD, holder


async def cancelled_often(work):
    """Cancel *work* each time that it waits."""
    task = asyncio.create_task(work)
    await await_until(lambda: HELD)
    while not task.done():
        task.cancel()
        await take_turns()


async def cancelled_by_a_scope(work):
    """Cancel *work* as anyio does: at every await, until the scope is left."""
    with CancelScope() as scope:

        async def cancel():
            await await_until(lambda: HELD)
            scope.cancel()

        cancelling = asyncio.create_task(cancel())
        await work
    await cancelling


# I3: else it went on with its sessions, and nobody could take them over.
@pytest.mark.parametrize("cancelled", [cancelled_often, cancelled_by_a_scope])
async def test_a_runtime_that_is_cancelled_while_it_is_left_lets_go_of_all(runtime, log, cancelled):
    agent = holder()

    async def work():
        async with runtime() as here:
            await (await here.start(agent, "Go", id="one")).result()

    before = asyncio.all_tasks()
    await cancelled(work())
    await log.clock.settle()

    assert before == asyncio.all_tasks()
    assert [] == await log.board.all()
    async with runtime() as here:
        assert "one" == (await here.resume("one")).id


async def test_a_log_that_is_left_while_cancelled_is_closed(tmp_path):
    agent = holder()

    async def work():
        async with cueline.open_runtime(tmp_path / "log.db", on="inline") as here:
            await (await here.start(agent, "Go", id="one")).result()

    await cancelled_by_a_scope(work())

    assert ["log.db", "log.db-views.db", "log.db.presence"] == sorted(
        each.name for each in tmp_path.iterdir()
    )
