"""The approval gate as a Ray actor, and its client for session hosts."""

from datetime import datetime
from typing import cast

from cueline.actors.approval_gate import ApprovalGate, ApprovalName, Opened
from cueline.cluster.cluster_context import ClusterContext
from cueline.cluster.remote_store import log_of
from cueline.cluster.singleton_client import SingletonClient
from cueline.deciders.approval import Vote
from cueline.events.approval import ApprovalOpened, SupersedeCode
from cueline.events.session import GateAnswer


class ApprovalGateActor:
    """Holds an `ApprovalGate`. Ray restarts it: it has no state; see `GatePort`."""

    def __init__(self, site: ClusterContext) -> None:
        self._site = site
        self._made: ApprovalGate | None = None

    async def open(
        self, name: ApprovalName, opened: ApprovalOpened, granted_by: str | None
    ) -> Opened:
        return await self._gate().open(name, opened, granted_by)

    async def vote(self, name: ApprovalName, vote: Vote) -> GateAnswer:
        return await self._gate().vote(name, vote)

    async def expire(self, name: ApprovalName, at: datetime) -> GateAnswer:
        return await self._gate().expire(name, at)

    async def supersede(self, name: ApprovalName, reason: SupersedeCode) -> GateAnswer:
        return await self._gate().supersede(name, reason)

    def _gate(self) -> ApprovalGate:
        if self._made is None:
            self._made = self._site.parts.gate(log_of(self._site)[0])
        return self._made


class RemoteGate:
    """See `GatePort`. Each call may be made twice, so it is, while the gate is away.

    Raises:
        UnknownOutcomeError: it stayed away; ask again later.
    """

    def __init__(self, site: ClusterContext) -> None:
        self._gate = SingletonClient(site, ApprovalGateActor, "gate")

    async def open(
        self, name: ApprovalName, opened: ApprovalOpened, granted_by: str | None
    ) -> Opened:
        return cast("Opened", await self._gate.ask("open", name.stream, name, opened, granted_by))

    async def vote(self, name: ApprovalName, vote: Vote) -> GateAnswer:
        return cast("GateAnswer", await self._gate.ask("vote", name.stream, name, vote))

    async def expire(self, name: ApprovalName, at: datetime) -> GateAnswer:
        return cast("GateAnswer", await self._gate.ask("expire", name.stream, name, at))

    async def supersede(self, name: ApprovalName, reason: SupersedeCode) -> GateAnswer:
        return cast("GateAnswer", await self._gate.ask("supersede", name.stream, name, reason))
