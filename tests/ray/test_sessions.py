import asyncio

from cueline.testing.wait import PATIENCE_SECONDS

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
