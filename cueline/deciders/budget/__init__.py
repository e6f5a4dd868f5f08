"""The rules of one budget: what a tree of sessions may spend (I8).

Rule 1. What is settled and reserved stays within each limit on the way from a
session to the root, so long as no call costs more than was reserved for it.

Rule 2. A session has one call at a time. Calls are named by turn and attempt,
which only grow; so the last one that was closed bars all before it.

Rule 3. The same question has the same answer: a call that was granted is
granted, one that was closed is closed. Only a refusal is looked at again.

Rule 4. Whoever is refused waits in line. When room is made, those it fits are
told, the oldest first; it is a hint, and whoever asks first has the room.
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
from cueline.deciders.budget.evolve import evolve
from cueline.deciders.budget.state import Amount, BudgetState, ModelCallName
from cueline.deciders.decider import Decider
from cueline.events.budget import BudgetEvent

BUDGET: Decider[BudgetCommand, BudgetState, BudgetEvent] = Decider(BudgetState(), decide, evolve)

__all__ = [
    "BUDGET",
    "Amount",
    "BudgetCommand",
    "BudgetState",
    "Closing",
    "ModelCallName",
    "Raise",
    "Release",
    "Reserve",
    "ReserveAnswer",
    "Settle",
    "answer",
    "closing_of",
    "fencing_epoch",
]
