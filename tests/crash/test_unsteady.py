"""Whatever happens, a tree comes to rest, has paid all, and has read what it was told."""

from collections import Counter

import pytest

from cueline.client.redecide import first_difference
from cueline.deciders.budget import BUDGET
from cueline.events.budget import CostSettled
from cueline.events.session import ModelReplied, ReservationClosed, ToolReconciled
from cueline.events.stream import sibling
from tests.crash.fleet import Fleet
from tests.crash.unsteady import Troubled

UNDECLARED = {"pay", "deploy"}
RUN_AGAIN = {"did_not_happen", "run_again"}
"""What a person can say of a call in doubt so that it runs again."""


# 000-002, 000-003, 000-007, 000-068, I5, I7, I8, I10, I13, I14
@pytest.mark.parametrize("seed", [0, 2, 3, 4, 5, 6])
async def test_a_tree_in_trouble_comes_to_rest(seed):
    await check_course(Troubled(seed))


# I2, I4, I5: a host that was frozen sends what it meant to, and another has its sessions.
# With 45, 61, 67 and 69 a runner that took such orders, late ones too, would run a call twice.
@pytest.mark.parametrize("seed", [0, 5, 45, 61, 67, 69])
async def test_a_tree_comes_to_rest_among_processes_that_freeze_and_thaw(seed):
    await check_course(Fleet(seed))


async def check_course(tree):
    async with tree:
        await tree.start()
        await tree.suffer()
        await tree.calm_down()
        await check_end(tree)


async def check_end(tree):
    assert [] == await tree.unrested()
    budget = await tree.outside.facts("budget-default/root")
    assert {0} == {node.reserved.usd for node in BUDGET.replay(budget).nodes.values()}
    paid, replied = 0, False
    for stream in tree.streams:
        past = [event async for event in tree.outside.journal.read(stream)]
        facts = [fact for _, fact in past]
        paid += sum(fact.usd for fact in facts if isinstance(fact, ReservationClosed))
        replied = replied or any(isinstance(fact, ModelReplied) for fact in facts)
        inbox = await tree.outside.store.head(sibling(stream, "inbox"))
        assert inbox.version == max((await tree.outside.state(stream)).inbox_read, 1)
        assert {} == repeated(stream, tree.outside.executor.starts, facts)
        assert None is first_difference(stream, past, whole=True)[1]
    assert sum(fact.usd for fact in budget if isinstance(fact, CostSettled)) == paid
    # In an unlucky course no model ever answers.
    assert paid > 0 or not replied


def repeated(stream, starts, facts):
    """Name the undeclared calls that began again without a person's word that they had not."""
    began = Counter(start.key for start in starts if start.tool in UNDECLARED)
    said = (f for f in facts if isinstance(f, ToolReconciled) and f.outcome in RUN_AGAIN)
    allowed = Counter(f"{stream}/{fact.effect}" for fact in said)
    ours = {key: times for key, times in began.items() if key.startswith(f"{stream}/")}
    return {key: times for key, times in ours.items() if times > 1 + allowed[key]}
