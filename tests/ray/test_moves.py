"""Sessions move to a host that joins."""

from collections import Counter

from cueline.testing.wait import await_until

SCRIPT = """
[[reply]]
text = "First."
calls = [{ name = "undeclared" }, { name = "undeclared" }]

[[reply]]
text = "Done."
"""
SESSIONS = 30


def loads(world):
    """Return how many sessions each host has, as the dispatcher believes."""
    return Counter(world.place._loops._dispatcher._sessions._host_of.values())


# 000-068, I5
async def test_sessions_move_to_a_host_that_joins_and_no_undeclared_call_is_repeated(world_of):
    async with world_of() as world:
        await world.ask(SCRIPT, SESSIONS, tools=["undeclared"])
        async with world.driven():
            first = (await world.presence("host")).incarnation
            await await_until(lambda: loads(world)[first] == SESSIONS)
            await world.begun()

            world.scale(hosts=2)
            await await_until(lambda: loads(world).keys() - {first})
            (second,) = loads(world).keys() - {first}
            await await_until(lambda: loads(world)[second] >= SESSIONS // 3)
            world.let_go()
            results = [await world.result(stream) for stream in world.streams]
            heads = await world.log.store.heads(world.streams)

        assert ["Done."] * SESSIONS == results
        keys = Counter(key for key, *_ in world.journal_lines())
        assert 2 * SESSIONS == len(keys) == keys.total()
        assert {first, second} == {head.owner for head in heads.values()}
        assert [] == world.troubles
