"""The cost ledger: reserves budget before a model call, and settles it afterwards (I8).

The ledger owns no stream: every append is a compare-and-set on the budget's version
(I3). After a conflict the ledger reads the new events and decides again. So several
ledgers may run at once, on any machine. A ledger caches each folded budget with its
version, so a thousand sessions of one tree do not read their budget a thousand times.
"""

import asyncio
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Protocol
from uuid import uuid4

from cueline.actors.fold import fold
from cueline.deciders.budget import (
    BUDGET,
    BudgetCommand,
    BudgetState,
    Closing,
    Raise,
    Release,
    Reserve,
    ReserveAnswer,
    Settle,
    answer,
    closing_of,
    fencing_epoch,
)
from cueline.errors import FencedError, WrongExpectedVersionError
from cueline.events.budget import BudgetEvent, BudgetOffered
from cueline.events.inbox import BudgetFreed
from cueline.events.journal import FactWrite, Journal
from cueline.events.store import ANY, NO_STREAM
from cueline.events.stream import sibling

KEPT = 1000
"""Number of folded budgets in memory; the least recently used goes first."""


class LedgerPort(Protocol):
    """The ledger as a session host sees it, local or remote. Each call may be repeated.

    Raises:
        FencedError: a later owner of the session has called; stop.
    """

    async def reserve(self, budget: str, command: Reserve) -> ReserveAnswer:
        """Reserve budget for a model call."""

    async def settle(self, budget: str, command: Settle) -> Closing:
        """Settle a call that was started; the command has no amount if the cost is unknown."""

    async def release(self, budget: str, command: Release) -> Closing:
        """Release the reservation of a call that was not started and never will be."""

    async def raise_limits(self, budget: str, command: Raise) -> None:
        """Raise limits of a session; lower values change nothing."""


@dataclass(slots=True)
class _Folded:
    """One folded budget, and the lock for changing it."""

    state: BudgetState = field(default_factory=lambda: BUDGET.initial_state)
    version: int = NO_STREAM
    turn: asyncio.Lock = field(default_factory=asyncio.Lock)


class CostLedger:
    """See `LedgerPort`."""

    def __init__(self, journal: Journal) -> None:
        self._journal = journal
        self._budgets: OrderedDict[str, _Folded] = OrderedDict()

    async def reserve(self, budget: str, command: Reserve) -> ReserveAnswer:
        return answer(command, await self._handle(budget, command))

    async def settle(self, budget: str, command: Settle) -> Closing:
        return closing_of(command.call, await self._handle(budget, command))

    async def release(self, budget: str, command: Release) -> Closing:
        return closing_of(command.call, await self._handle(budget, command))

    async def raise_limits(self, budget: str, command: Raise) -> None:
        await self._handle(budget, command)

    async def _handle(self, budget: str, command: BudgetCommand) -> BudgetState:
        folded = self._folded(budget)
        async with folded.turn:
            current = False
            while True:
                _check_epoch(command, folded.state)
                events = BUDGET.decide(command, folded.state)
                if not events and current:
                    return folded.state
                try:
                    if events:
                        return await self._append(budget, events, folded)
                except WrongExpectedVersionError:
                    pass
                # Another process's ledger may have appended. An append detects that; an answer
                # without an append has to read first.
                folded.state, folded.version = await fold(
                    self._journal, budget, BUDGET, folded.state, folded.version
                )
                current = True

    async def _append(
        self, budget: str, events: Sequence[BudgetEvent], folded: _Folded
    ) -> BudgetState:
        writes = [
            FactWrite(
                stream=budget,
                steps=[events],
                expected_version=folded.version,
                actor="system:ledger",
            ),
            *_budget_notifications(budget, events),
        ]
        # If the outcome of an append is unknown, the next append with the expected version shows
        # whether the first was written; the same decision is made again.
        await self._journal.append(writes, key=uuid4().hex)
        folded.version += len(events)
        folded.state = BUDGET.replay(events, folded.state)
        return folded.state

    def _folded(self, budget: str) -> _Folded:
        folded = self._budgets.setdefault(budget, _Folded())
        self._budgets.move_to_end(budget)
        for name in list(self._budgets)[:-KEPT]:
            if not self._budgets[name].turn.locked():
                del self._budgets[name]
        return folded


def _budget_notifications(budget: str, events: Sequence[BudgetEvent]) -> list[FactWrite]:
    """Return the messages to append with *events*, for sessions that wait for budget (I7)."""
    return [
        FactWrite(
            stream=sibling(session, "inbox"),
            steps=[[BudgetFreed(budget=budget)]],
            expected_version=ANY,
            actor="system:ledger",
        )
        for event in events
        if isinstance(event, BudgetOffered)
        for session in event.sessions
    ]


def _check_epoch(command: BudgetCommand, state: BudgetState) -> None:
    fencing = fencing_epoch(command, state)
    if fencing is not None and not isinstance(command, Raise):
        raise FencedError(command.call.session, command.epoch, fencing)
