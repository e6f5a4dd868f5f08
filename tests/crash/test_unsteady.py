"""Whatever happens, a tree comes to rest, has paid all, and has read what it was told."""

import pytest

from cueline.deciders.budget import BUDGET
from cueline.events.budget import CostSettled
from cueline.events.session import ReservationClosed
from cueline.events.stream import sibling
from tests.crash.unsteady import Troubled


# 000-002, 000-003, 000-007, 000-068, I7, I8, I13, I14
@pytest.mark.parametrize("seed", [0, 2, 3, 4, 5, 6])
async def test_a_tree_in_trouble_comes_to_rest(seed):
    tree = Troubled(seed)
    await tree.start()
    await tree.suffer()
    await tree.calm_down()

    assert [] == await tree.unrested()
    budget = await tree.outside.facts("budget-default/root")
    held = {node.reserved.usd for node in BUDGET.replay(budget).nodes.values()}
    assert {0} == held
    settled = sum(fact.usd for fact in budget if isinstance(fact, CostSettled))
    told = [fact for stream in tree.streams for fact in await tree.outside.facts(stream)]
    assert settled == sum(fact.usd for fact in told if isinstance(fact, ReservationClosed)) > 0
    for stream in tree.streams:
        inbox = await tree.outside.store.head(sibling(stream, "inbox"))
        assert inbox.version == max((await tree.outside.state(stream)).inbox_read, 1)
    await tree.world.kill()
