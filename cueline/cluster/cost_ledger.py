"""The cost ledger as a Ray actor, and its client for session hosts."""

from typing import cast

from cueline.actors.cost_ledger import CostLedger
from cueline.cluster.cluster_context import ClusterContext
from cueline.cluster.remote_store import log_of
from cueline.cluster.singleton_client import SingletonClient
from cueline.deciders.budget import Closing, Raise, Release, Reserve, ReserveAnswer, Settle


class CostLedgerActor:
    """Holds a `CostLedger`. Ray restarts it: it folds its state again; see `LedgerPort`."""

    def __init__(self, site: ClusterContext) -> None:
        self._site = site
        self._made: CostLedger | None = None

    async def reserve(self, budget: str, command: Reserve) -> ReserveAnswer:
        return await self._ledger().reserve(budget, command)

    async def settle(self, budget: str, command: Settle) -> Closing:
        return await self._ledger().settle(budget, command)

    async def release(self, budget: str, command: Release) -> Closing:
        return await self._ledger().release(budget, command)

    async def raise_limits(self, budget: str, command: Raise) -> None:
        await self._ledger().raise_limits(budget, command)

    def _ledger(self) -> CostLedger:
        if self._made is None:
            self._made = self._site.parts.ledger(log_of(self._site)[0])
        return self._made


class RemoteLedger:
    """See `LedgerPort`. Each call may be made twice, so it is, while the ledger is away.

    Raises:
        UnknownOutcomeError: it stayed away; ask again later.
    """

    def __init__(self, site: ClusterContext) -> None:
        self._ledger = SingletonClient(site, CostLedgerActor, "ledger")

    async def reserve(self, budget: str, command: Reserve) -> ReserveAnswer:
        return cast("ReserveAnswer", await self._ledger.ask("reserve", budget, budget, command))

    async def settle(self, budget: str, command: Settle) -> Closing:
        return cast("Closing", await self._ledger.ask("settle", budget, budget, command))

    async def release(self, budget: str, command: Release) -> Closing:
        return cast("Closing", await self._ledger.ask("release", budget, budget, command))

    async def raise_limits(self, budget: str, command: Raise) -> None:
        await self._ledger.ask("raise_limits", budget, budget, command)
