"""What an actor tells whoever asks it by a long poll."""

import asyncio

from cueline.cluster.ray_call import NotificationBuffer


async def test_what_is_to_be_told_is_told_at_once_to_who_hangs():
    notification_buffer = NotificationBuffer()
    asking = asyncio.create_task(notification_buffer.take(3600))
    await asyncio.wait([asking], timeout=0)

    notification_buffer.add("trouble")

    assert ["trouble"] == await asyncio.wait_for(asking, 5)


async def test_what_was_told_is_told_once():
    notification_buffer = NotificationBuffer()
    notification_buffer.add("one")
    notification_buffer.add("two")

    assert ["one", "two"] == await notification_buffer.take(3600)
    assert [] == await notification_buffer.take(0)


async def test_who_asks_again_hangs_until_there_is_more():
    notification_buffer = NotificationBuffer()
    notification_buffer.add("one")
    await notification_buffer.take(3600)
    asking = asyncio.create_task(notification_buffer.take(3600))
    await asyncio.wait([asking], timeout=0)
    hung = not asking.done()

    notification_buffer.add("two")

    assert (True, ["two"]) == (hung, await asyncio.wait_for(asking, 5))


async def test_the_last_ones_are_kept_where_nobody_asks():
    notification_buffer = NotificationBuffer(2)
    for number in range(5):
        notification_buffer.add(number)

    assert [3, 4] == await notification_buffer.take(0)
