"""A reply is seen while it comes from an actor, and again when its host has died."""

import asyncio
import os
import signal

import pytest

from cueline.actors.live_text import TextDelta
from cueline.client.client import Client
from cueline.client.session import Session
from cueline.runtime.place import Place
from cueline.testing.wait import PATIENCE_SECONDS

SPEAKS = """
[[reply]]
turn = 1
attempt = 1
text = "One two three four five six seven eight nine ten"
delay_seconds = 1
chunk_seconds = 0.5

[[reply]]
turn = 1
text = "Done at last."
delay_seconds = 1
chunk_seconds = 0.5
"""


async def pieces_of(world):
    """Yield the pieces that a client sees which is not on the cluster, and knows no host."""
    session = Session(Client(world.log, Place(world.log.url)), world.streams[0])
    async for each in session.stream():
        if isinstance(each, TextDelta):
            yield each


@pytest.mark.long
async def test_a_reply_of_an_actor_is_seen_while_it_comes_and_again_after_its_death(on_cluster):
    async with asyncio.timeout(2 * PATIENCE_SECONDS), on_cluster(SPEAKS) as world:
        pieces = pieces_of(world)
        begun = [await anext(pieces) for _ in range(2)]
        host = await world.presence("host")
        os.kill(host.pid, signal.SIGKILL)
        again = [piece async for piece in pieces if piece.attempt > 1]

        assert "One two" == "".join(piece.text for piece in begun)
        # The reply's event may come before its last pieces, which are then left out.
        text = "".join(piece.text for piece in again)
        assert text
        assert "Done at last.".startswith(text)
        assert {("1.m", 2)} == {piece.call for piece in again}
        assert host.address.startswith("127.0.0.1:")
