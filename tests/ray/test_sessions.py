import asyncio

from cueline.actors.session_owner import owner_of
from cueline.errors import CorruptEventError
from cueline.testing.wait import PATIENCE_SECONDS, await_until
from tests.damage import swap

SCRIPT = """
[[reply]]
text = "First."
calls = [{ name = "repeatable" }, { name = "repeatable" }]

[[reply]]
text = "Done."
"""


async def test_a_session_runs_on_ray_to_its_end(on_cluster):
    async with on_cluster(SCRIPT, tools=["repeatable"]) as world:
        world.let_go()
        result = await asyncio.wait_for(world.session.result(), PATIENCE_SECONDS)

        assert ("completed", "Done.") == (result.status, result.text)
        assert 2 == len(world.journal_lines())
        assert [] == world.troubles


# C9: whoever has mended it says so by a message, wherever its host is.
async def test_a_session_that_could_not_be_read_goes_on_when_it_is_resumed(world_of):
    async with world_of() as world:
        await world.ask(SCRIPT, 1)
        swap(world.log.store.path, "StartAsked", '"go"', '"no"')
        async with world.driven():
            await await_until(lambda: world.troubles)
            log, now = world.log, world.log.clock.now()
            assert await owner_of(log.store, log.board, world.streams[0], now) is None
            swap(world.log.store.path, "StartAsked", '"no"', '"go"')
            await world.session.resume()

            assert "Done." == await world.result()
        assert [CorruptEventError] == [type(error) for _, error in world.troubles]
