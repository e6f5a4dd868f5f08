"""What is recorded and left to others."""

import asyncio
from dataclasses import replace

import pytest

from cueline.actors.presence import presence_of
from cueline.runtime import open_log

ONE = "session-default/one"


@pytest.fixture
def paused(asking):
    asking("pause", "one")
    return asking


def driven(shell):
    """Have this process drive session `one`."""

    async def take():
        async with open_log(shell.log) as log:
            head = await log.store.head(ONE)
            owner = replace(presence_of("inline"), incarnation=head.owner)
            await log.board.beat(owner)

    asyncio.run(take())


def test_what_goes_on_detached_is_told_as_it_stands(paused):
    told = paused.json("resume", "one", "--detach")

    assert {"id": "one", "status": "waiting", "up": False} == told


def test_whoever_drives_a_session_takes_up_what_is_said_detached(paused):
    driven(paused)

    done = paused("resume", "one", "--detach")

    assert (0, "one\n", "") == (done.exit_code, done.stdout, done.stderr)
