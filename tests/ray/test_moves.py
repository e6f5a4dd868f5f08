"""Sessions move to a host that joins; calls go to a runner that meets their demands."""

from collections import Counter

from cueline.deciders.fleet import HOSTS, RUNNERS, Group, Range
from cueline.events.session import SessionWaiting, ToolStarted
from cueline.testing.wait import await_until

SCRIPT = """
[[reply]]
text = "First."
calls = [{ name = "TOOL" }, { name = "TOOL" }]

[[reply]]
text = "Done."
"""
SESSIONS = 30


def loads(world):
    """Return how many sessions each host has, as the dispatcher believes."""
    return Counter(world.place.loops._dispatcher._sessions._host_of.values())


# 000-068, I5
async def test_sessions_move_to_a_host_that_joins_and_no_undeclared_call_is_repeated(world_of):
    async with world_of() as world:
        await world.ask(SCRIPT.replace("TOOL", "undeclared"), SESSIONS, tools=["undeclared"])
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


# I14
async def test_a_call_waits_for_a_runner_that_meets_its_demands_and_goes_to_it(world_of):
    async with world_of() as world:
        demands = {"resources": {"memory": 10**8}}
        await world.ask(
            SCRIPT.replace("TOOL", "repeatable"), 1, tools=["repeatable"], demands=demands
        )
        async with world.driven():
            waits = await world.fact(SessionWaiting)
            small = {member.incarnation for member in world.fleet.members()}
            big = Group("runner", resources=(("memory", 2.0 * 10**8),))
            world.fleet.want({HOSTS: Range(1, 1), RUNNERS: Range(1, 1), big: Range(1, 1)})
            began = await world.fact(ToolStarted)
            world.let_go()

            assert "Done." == await world.result()
        assert demands["resources"] == waits.cause.unmet.resources
        assert began.runner not in small
