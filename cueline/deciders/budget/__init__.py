"""The rules of one budget: the spending of a tree of sessions (I8).

Rule 1. Settled plus reserved amounts stay within each limit from a session to the
root, as long as no call costs more than its reservation.

Rule 2. A session has one model call at a time. Calls are named by turn and
attempt, which only grow; so the last closed call bars all earlier ones.

Rule 3. A repeated request has the same answer, for granted and closed calls. Only
a refused request is decided again.

Rule 4. A refused session waits in a queue. When budget is freed, the sessions that
fit get an offer, oldest first. An offer is a hint: the first to ask gets the budget.
"""

from cueline.deciders.budget.decide import (
    BudgetCommand,
    Closing,
    Raise,
    Release,
    Reserve,
    ReserveAnswer,
    Settle,
    answer,
    closing_of,
    decide,
    fencing_epoch,
)
from cueline.deciders.budget.evolve import Amount, BudgetState, ModelCallName, evolve
from cueline.deciders.decider import Decider
from cueline.events.budget import BudgetEvent

BUDGET: Decider[BudgetCommand, BudgetState, BudgetEvent] = Decider(BudgetState(), decide, evolve)
