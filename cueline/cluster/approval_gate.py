"""The approval gate as a Ray actor, and its client for session hosts."""

from datetime import datetime
from typing import cast

from cueline.actors.approval_gate import ApprovalName, Opened
from cueline.cluster.cluster_context import ClusterContext
from cueline.cluster.singleton_client import SingletonActor, SingletonClient
from cueline.deciders.approval import Vote
from cueline.events.approval import ApprovalOpened, SupersedeCode
from cueline.events.session import GateAnswer


class ApprovalGateActor(SingletonActor):
    """Holds an `ApprovalGate`, which has no state."""

    role = "gate"


class RemoteGate:
    """See `GatePort`. Each call may be repeated, and is repeated while the gate is away.

    Raises:
        UnknownOutcomeError: it stayed away; ask again later.
    """

    def __init__(self, context: ClusterContext) -> None:
        self._gate = SingletonClient(context, ApprovalGateActor)

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
