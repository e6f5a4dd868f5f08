"""64 sessions of one tree against one dollar, while processes and the ledger die (I8)."""

from decimal import Decimal

import pytest

from cueline.deciders.budget import BUDGET
from cueline.deciders.session import Status
from cueline.events.budget import CostSettled
from cueline.events.session import ReservationClosed
from tests.crash.tree import BUDGET_STREAM, CAP, MOST, RATE, Tree, longest_wait


# 000-003, 000-007, 000-019, 000-020, D7: "To be shown".
@pytest.mark.parametrize("seed", [2, 3, 12])
async def test_a_tree_keeps_to_its_budget_whoever_dies(seed, figures):
    tree = Tree(seed)
    await tree.start()
    await tree.run()

    budget = await tree.place.facts(BUDGET_STREAM)
    longest, refusals = await longest_wait(tree.place)
    most = await check_never_above(budget)
    paid = await paid_in_logs(tree)
    state = BUDGET.replay(budget)
    top = state.nodes["session-default/root"]
    ended = [s.status for s in tree.index.states.values() if s.finished]
    figures(
        f"overshoot {max(0, most - CAP)}, at most {most} of {CAP}; longest wait "
        f"with room {longest} s; {tree.model.peak} in flight; {refusals['busy']} busy, "
        f"{refusals['exhausted']} exhausted; {len(ended)} ended; died: "
        f"{dict(tree.deaths)}, ledgers {dict(tree.place.ledger.deaths)}"
    )
    assert most <= CAP
    assert longest <= 61
    assert tree.model.peak >= 8
    assert refusals["busy"] >= 8
    assert refusals["exhausted"] >= 1
    assert top.settled.usd == paid == sum(f.usd for f in budget if isinstance(f, CostSettled))
    assert Decimal(0) == top.reserved.usd
    assert {Status.COMPLETED} == set(ended)
    assert len(tree.deaths) >= 5
    assert tree.place.ledger.deaths


async def check_never_above(budget):
    """Return the most that was ever settled and reserved, having checked it for each session."""
    state, most = BUDGET.initial_state, Decimal(0)
    for fact in budget:
        state = BUDGET.evolve(state, fact)
        for node in state.nodes.values():
            taken = node.settled.usd + node.reserved.usd
            assert taken <= node.limits.get("max_cost", CAP)
            most = max(most, taken)
    return most


async def paid_in_logs(tree):
    """Return what the sessions' own logs say that was spent."""
    facts = [fact for name in tree.streams for fact in await tree.place.facts(name)]
    return sum(f.usd for f in facts if isinstance(f, ReservationClosed))


def test_a_call_costs_less_than_the_budget_has_for_all():
    assert MOST * RATE * 64 > CAP
