"""What is done for ever goes on, whatever becomes of it."""

import asyncio

import pytest

from cueline.actors.background import AGAIN_SECONDS, always, meanwhile
from cueline.errors import LogUnavailableError
from cueline.testing.clock import FakeClock


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (LogUnavailableError("log.db", "it is locked"), "log.db: it is locked"),
        (ValueError("a bug"), "ValueError: a bug"),
        (
            asyncio.CancelledError(),
            "RuntimeError: it raised CancelledError, and nobody had cancelled it",
        ),
    ],
)
async def test_a_row_of_failures_is_told_once_and_ends_nothing(error, said):
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

    loop = asyncio.create_task(always("following", step, clock=clock, on_trouble=tell))
    await clock.advance(5 * AGAIN_SECONDS)

    assert [("following", said)] * 2 == told
    assert 1 == len(done)
    assert not loop.done()
    loop.cancel()


async def test_what_goes_on_meanwhile_ends_with_what_it_goes_on_beside():
    clock, ended = FakeClock(), []

    async def work():
        try:
            await asyncio.Event().wait()
        finally:
            ended.append(1)

    with meanwhile(work()):
        await clock.settle()
        assert not ended
    await clock.settle()

    assert ended


async def test_what_nobody_can_be_told_of_ends_nothing():
    # Whoever began it waits for what it does.
    clock, tried = FakeClock(), []

    async def step():
        tried.append(clock.now())
        raise LogUnavailableError("log.db", "it is locked")

    def tell(*_):
        raise BrokenPipeError

    loop = asyncio.create_task(always("following", step, clock=clock, on_trouble=tell))
    await clock.advance(AGAIN_SECONDS)

    assert 2 == len(tried)
    loop.cancel()
