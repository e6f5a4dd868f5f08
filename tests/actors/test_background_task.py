"""What is done for ever goes on, whatever becomes of it."""

import asyncio

import pytest

from cueline.actors.background_task import AGAIN_SECONDS, background_task, repeat_forever, shielded
from cueline.errors import LogUnavailableError
from cueline.testing.clock import FakeClock


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (LogUnavailableError("log.db", "it is locked"), "log.db: it is locked"),
        (ValueError("a bug"), "ValueError: a bug"),
        (
            asyncio.CancelledError(),
            "RuntimeError: it raised CancelledError without being cancelled",
        ),
    ],
)
async def test_consecutive_failures_are_reported_once_and_the_loop_continues(error, said):
    clock, told, done = FakeClock(), [], []
    failing = [True, True, False, True]

    async def step():
        if not failing:
            await clock.sleep(3600)
        elif failing.pop(0):
            raise error
        done.append(clock.now())

    def tell(what, why):
        told.append((what, str(why)))

    loop = asyncio.create_task(repeat_forever("following", step, clock=clock, on_trouble=tell))
    await clock.advance(5 * AGAIN_SECONDS)

    assert [("following", said)] * 2 == told
    assert 1 == len(done)
    assert not loop.done()
    loop.cancel()


async def test_a_background_task_ends_with_its_block():
    clock, ended = FakeClock(), []

    async def work():
        try:
            await asyncio.Event().wait()
        finally:
            ended.append(1)

    with background_task(work()):
        await clock.settle()
        assert not ended
    await clock.settle()

    assert ended


async def test_an_error_that_cannot_be_reported_ends_no_loop():
    # Whoever began it waits for what it does.
    clock, tried = FakeClock(), []

    async def step():
        tried.append(clock.now())
        raise LogUnavailableError("log.db", "it is locked")

    def tell(*_):
        raise BrokenPipeError

    loop = asyncio.create_task(repeat_forever("following", step, clock=clock, on_trouble=tell))
    await clock.advance(AGAIN_SECONDS)

    assert 2 == len(tried)
    loop.cancel()


@pytest.mark.parametrize("times", [0, 1, 3])
async def test_who_is_cancelled_again_and_again_ends_what_has_to_be_ended(times):
    clock, ended = FakeClock(), []

    async def let_go():
        await clock.sleep(1)
        ended.append("all")

    leaving = asyncio.create_task(shielded(let_go()))
    for _ in range(times):
        await clock.settle()
        leaving.cancel()
    await clock.advance(1)

    assert ["all"] == ended
    assert bool(times) == leaving.cancelled()


async def test_an_error_at_the_end_is_reported():
    async def let_go():
        raise LogUnavailableError("log.db", "it is locked")

    with pytest.raises(LogUnavailableError):
        await shielded(let_go())
