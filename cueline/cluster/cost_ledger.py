"""The cost ledger as a Ray actor, and its client for session hosts."""

from typing import cast

from cueline.cluster.cluster_context import ClusterContext
from cueline.cluster.singleton_client import SingletonActor, SingletonClient
from cueline.deciders.budget import Closing, Raise, Release, Reserve, ReserveAnswer, Settle


class CostLedgerActor(SingletonActor):
    """Holds a `CostLedger`, which folds its state again after a restart."""

    role = "ledger"


class RemoteLedger:
    """See `LedgerPort`. Each call may be repeated, and is repeated while the ledger is away.

    Raises:
        UnknownOutcomeError: it stayed away; ask again later.
    """

    def __init__(self, context: ClusterContext) -> None:
        self._ledger = SingletonClient(context, CostLedgerActor)

    async def reserve(self, budget: str, command: Reserve) -> ReserveAnswer:
        return cast("ReserveAnswer", await self._ledger.ask("reserve", budget, budget, command))

    async def settle(self, budget: str, command: Settle) -> Closing:
        return cast("Closing", await self._ledger.ask("settle", budget, budget, command))

    async def release(self, budget: str, command: Release) -> Closing:
        return cast("Closing", await self._ledger.ask("release", budget, budget, command))

    async def raise_limits(self, budget: str, command: Raise) -> None:
        await self._ledger.ask("raise_limits", budget, budget, command)
