import os
import signal
from collections import Counter
from decimal import Decimal

from cueline.cluster.singletons import RemoteLedger
from cueline.deciders.budget import Amount, ModelCallName, Reserve
from cueline.events.agent import Limits, Price
from cueline.events.budget import Allowance
from cueline.events.stream import sibling

SCRIPT = """
[[reply]]
text = "I act."
calls = [{ name = "repeatable" }]

[[reply]]
text = "Done."
"""
OTHER = "session-default/other"
PRICED = {
    "limits": Limits(max_cost=Decimal("1.00")),
    "prices": {"scripted/*": Price(input=Decimal(3), output=Decimal(15))},
}


def ask(turn, usd):
    path = (Allowance(session=OTHER, max_cost=Decimal(1)),)
    return Reserve(ModelCallName(OTHER, f"{turn}.m", 1), 1, path, Amount(1, Decimal(usd)))


async def test_a_budget_is_kept_though_the_ledger_dies(on_cluster):
    # 000-003, DESIGN 6: restarted and folded, it has the same answers.
    async with on_cluster(SCRIPT, tools=["repeatable"], **PRICED) as world:
        await world.begun()
        ledger = RemoteLedger(world.fleet.context)
        questions = [("budget-default/other", ask(1, "0.70")), ("budget-default/it", ask(1, "2"))]
        before = [await ledger.reserve(*question) for question in questions]
        os.kill(await world.pid_of("ledger"), signal.SIGKILL)
        world.let_go()

        assert "Done." == await world.result()
        assert before == [await ledger.reserve(*question) for question in questions]
        assert ["granted", "exhausted"] == [answer.verdict for answer in before]
        budget = sibling(world.streams[0], "budget")
        told = Counter([fact.type async for _, fact in world.log.journal().read(budget)])
        assert {"BudgetOpened": 1, "CostReserved": 2, "CostSettled": 2} == told
        assert [] == world.troubles
