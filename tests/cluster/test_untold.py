"""What an actor tells whoever asks it by a long poll."""

import asyncio

from cueline.cluster.untold import Untold


async def test_what_is_to_be_told_is_told_at_once_to_who_hangs():
    untold = Untold()
    asking = asyncio.create_task(untold.take(3600))
    await asyncio.wait([asking], timeout=0)

    untold.add("trouble")

    assert ["trouble"] == await asyncio.wait_for(asking, 5)


async def test_what_was_told_is_told_once():
    untold = Untold()
    untold.add("one")
    untold.add("two")

    assert ["one", "two"] == await untold.take(3600)
    assert [] == await untold.take(0)


async def test_who_asks_again_hangs_until_there_is_more():
    untold = Untold()
    untold.add("one")
    await untold.take(3600)
    asking = asyncio.create_task(untold.take(3600))
    await asyncio.wait([asking], timeout=0)
    hung = not asking.done()

    untold.add("two")

    assert (True, ["two"]) == (hung, await asyncio.wait_for(asking, 5))


async def test_the_last_ones_are_kept_where_nobody_asks():
    untold = Untold(2)
    for number in range(5):
        untold.add(number)

    assert [3, 4] == await untold.take(0)
