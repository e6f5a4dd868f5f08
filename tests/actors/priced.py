"""A session whose calls may cost 10 cents, and cost 4."""

from decimal import Decimal

from cueline.events.agent import Limits
from cueline.events.message import Cost
from cueline.testing.fakes import asks_for, says
from tests.actors.session_harness import SESSION, SessionHarness

BUDGET = "budget-default/s"
CENT = Decimal("0.01")
SAID = [asks_for(("read", {})), asks_for(("read", {})), says("Done.")]


def scene(replies=SAID, **limits):
    """Return a scene in which a call may cost 10 cents, and costs 4."""
    limits = limits or {"max_cost": Decimal(1)}
    place = SessionHarness(replies, limits=Limits(**limits))
    place.outside.bound = lambda agent, sent, counted: (sent, 10 * CENT)
    place.outside.price = lambda agent, model, usage: Cost(usd=4 * CENT, prices="list")
    return place


async def of_kind(place, kind, stream=SESSION):
    return [fact for fact in await place.outside.facts(stream) if isinstance(fact, kind)]
