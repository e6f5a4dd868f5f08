from decimal import Decimal

from cueline.client.runtime import Runtime
from cueline.events.agent import Limits, Price
from cueline.events.inbox import ChildEnded
from cueline.events.session import MessageReceived, ReservationClosed
from cueline.events.stream import sibling

READY = """
[[reply]]
text = "Ready."
"""
SCRIPT = """
[[reply]]
text = "I help."
calls = [{ name = "repeatable" }]

[[reply]]
text = "Helped."
"""
PRICES = {"scripted/*": Price(input=Decimal(3), output=Decimal(15))}


async def test_a_child_spends_its_parents_budget_whoever_dies(on_cluster):
    # I8, I7: its host dies in the middle; what it spent is told once, and was paid by the root.
    limits = Limits(max_cost=Decimal("1.00"))
    async with on_cluster(READY, sessions=0) as world:
        runtime = Runtime(world.log, world.here)
        parent = await runtime.start(
            world.agent(READY, limits=limits, prices=PRICES), "go", open=True
        )
        assert "Ready." == (await parent.result()).text
        helper = world.agent(SCRIPT, tools=["repeatable"], prices=PRICES)
        child = await runtime.start(helper, "help", parent=parent.id)
        await world.kill_in_a_call("host")

        assert "Helped." == await world.result(child.stream_name)
        settled = await end_told_to(parent)
        paid = [
            f.usd for f in await world.facts(child.stream_name) if isinstance(f, ReservationClosed)
        ]
        assert (2, sum(paid)) == (len(paid), settled.usd)
        assert 0 < settled.usd
        assert [] == await world.facts(sibling(child.stream_name, "budget"))


async def end_told_to(parent):
    """Return what the parent was told of its child's end, once it has read that."""
    async for _, fact, _ in parent.follow():
        if isinstance(fact, MessageReceived) and isinstance(fact.message, ChildEnded):
            return fact.message
    raise AssertionError("it follows until then")
