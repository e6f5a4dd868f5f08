"""A session that has limits of money and tokens."""

from decimal import Decimal

from cueline.deciders.session import due
from cueline.events.agent import Limits
from cueline.events.codes import Cause
from cueline.events.message import Cost, Usage
from cueline.events.session import (
    ModelStarted,
    ReservationClosed,
    SessionWaiting,
)
from cueline.testing.given import given
from tests.session_example import (
    AGENT,
    later,
    saying,
    started,
)

LIMITED = AGENT.model_copy(update={"limits": Limits(max_cost=Decimal(1), max_tokens=1000)})
USED = Usage(input=10, output=5)
COST = Cost(usd=Decimal("0.02"), prices="list")
BUDGET = "budget-default/1"


def granted(turn=1, attempt=1):
    return ModelStarted(effect=f"{turn}.m", attempt=attempt, grant=f"grant {turn}.{attempt}")


def reply(*tools, turn=1, attempt=1):
    said = saying(*tools, turn=turn, attempt=attempt)
    return said.model_copy(update={"usage": USED, "cost": COST})


def closed(turn=1, attempt=1, outcome="settled"):
    return ReservationClosed(effect=f"{turn}.m", attempt=attempt, outcome=outcome)


def busy(until=60):
    return SessionWaiting(kind="budget", cause=Cause(code="budget_busy"), deadline_at=later(until))


EXHAUSTED = SessionWaiting(kind="budget", cause=Cause(code="budget_exhausted"), exhausted=True)


def asked(**fields):
    return given().when(started(LIMITED, **fields))


def owed(past):
    return due(past.state)
