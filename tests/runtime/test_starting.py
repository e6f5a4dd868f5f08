"""Sessions that are started with a key, or several at once."""

import asyncio

import pytest

from cueline.client.client import Client
from cueline.deciders.session import Status
from cueline.errors import ConfigError, RejectedError
from cueline.runtime.place import Place
from tests.scripted import scripted

SCRIPT = 'reply = [{ text = "Good evening." }]'
CLERK = scripted(SCRIPT, name="clerk")


async def test_the_same_key_returns_the_same_session(runtime):
    async with runtime() as here:
        first = await here.start(CLERK, "go", key="mail 7")
        await first.result()
        again = await here.start(CLERK, "go", key="mail 7")
        result = await again.result()
        rows = await here.session_ids()

    assert [first.id] == [again.id] == rows
    assert (True, False) == (first.receipt.recorded, again.receipt.recorded)
    assert Status.COMPLETED is result.status


async def test_two_that_start_with_one_key_at_the_same_time_get_one_session(runtime):
    async with runtime() as here:
        both = await asyncio.gather(*[here.start(CLERK, "go", key="mail 7") for _ in range(2)])
        await both[0].result()

    assert both[0].id == both[1].id


async def test_the_key_of_a_session_that_nobody_drives_has_it_driven(log, runtime):
    recorded = await Client(log, Place(log.url)).start(CLERK, "go", key="mail 7")
    async with runtime() as here:
        again = await here.start(CLERK, "go", key="mail 7")
        result = await again.result()

    assert (recorded.id, Status.COMPLETED) == (again.id, result.status)


@pytest.mark.parametrize(
    ("agent", "goal", "what"),
    [(CLERK, "stay", "goal"), (scripted(SCRIPT, name="cook"), "go", "agent")],
)
async def test_a_key_starts_nothing_else(runtime, agent, goal, what):
    async with runtime() as here:
        await here.start(CLERK, "go", key="mail 7")
        with pytest.raises(RejectedError, match=f"'mail 7' started it with another {what}"):
            await here.start(agent, goal, key="mail 7")


async def test_a_key_takes_no_id(runtime):
    async with runtime() as here:
        with pytest.raises(ConfigError, match="leave the id out"):
            await here.start(CLERK, "go", key="mail 7", id="one")


async def test_an_error_of_gather_names_the_sessions_that_go_on(runtime):
    async with runtime() as here:
        with pytest.raises(RejectedError) as raised:
            await here.gather(
                here.start(CLERK, "go", id="one"), here.start(CLERK, "stay", id="one")
            )

    assert ["started before: one"] == raised.value.__notes__


async def test_gather_leaves_nothing_unawaited_after_an_error(runtime):
    async with runtime() as here:
        first, left = (here.start(CLERK, "stay", id="one") for _ in range(2))
        with pytest.raises(RejectedError):
            await here.gather(await here.start(CLERK, "go", id="one"), first, left)

    assert [None, None] == [each.cr_frame for each in (first, left)]
