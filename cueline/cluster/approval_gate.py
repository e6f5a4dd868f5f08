"""The approval gate in an actor of its own, and as a session host sees it."""

import asyncio
import time
from datetime import datetime
from typing import Any, cast

from cueline.actors.approval_gate import ApprovalGate, ApprovalName, Opened
from cueline.clock import SystemClock
from cueline.cluster.call import DEAD, UNCLEAR, Handle, call
from cueline.cluster.remote_store import CALL_SECONDS, PATIENCE_SECONDS, RemoteStore
from cueline.cluster.site import Site
from cueline.deciders.approval import Vote
from cueline.errors import UnknownOutcomeError
from cueline.events.approval import ApprovalOpened
from cueline.events.session import GateAnswer

_AGAIN_SECONDS = 0.05


class ApprovalGateActor:
    """A process with an `ApprovalGate` in it. Ray restarts it: it holds nothing."""

    def __init__(self, site: Site) -> None:
        self._site = site
        self._made: ApprovalGate | None = None

    async def open(
        self, name: ApprovalName, opened: ApprovalOpened, granted_by: str | None
    ) -> Opened:
        """See `GatePort.open`."""
        return await self._gate().open(name, opened, granted_by)

    async def vote(self, name: ApprovalName, vote: Vote) -> GateAnswer:
        """See `GatePort.vote`."""
        return await self._gate().vote(name, vote)

    async def expire(self, name: ApprovalName, at: datetime) -> GateAnswer:
        """See `GatePort.expire`."""
        return await self._gate().expire(name, at)

    async def supersede(self, name: ApprovalName, reason: str) -> GateAnswer:
        """See `GatePort.supersede`."""
        return await self._gate().supersede(name, reason)

    def _gate(self) -> ApprovalGate:
        if self._made is None:
            self._made = self._site.parts.gate(RemoteStore(self._site))
        return self._made


class RemoteGate:
    """See `GatePort`. Each call may be made twice, so it is, while the gate is away.

    Raises:
        UnknownOutcomeError: it stayed away; ask again later.
    """

    def __init__(self, site: Site) -> None:
        self._site = site
        self._handle: Handle = None

    async def open(
        self, name: ApprovalName, opened: ApprovalOpened, granted_by: str | None
    ) -> Opened:
        """See `GatePort.open`."""
        return cast("Opened", await self._ask("open", name, opened, granted_by))

    async def vote(self, name: ApprovalName, vote: Vote) -> GateAnswer:
        """See `GatePort.vote`."""
        return cast("GateAnswer", await self._ask("vote", name, vote))

    async def expire(self, name: ApprovalName, at: datetime) -> GateAnswer:
        """See `GatePort.expire`."""
        return cast("GateAnswer", await self._ask("expire", name, at))

    async def supersede(self, name: ApprovalName, reason: str) -> GateAnswer:
        """See `GatePort.supersede`."""
        return cast("GateAnswer", await self._ask("supersede", name, reason))

    async def _ask(self, method: str, name: ApprovalName, *asked: object) -> Any:
        clock = SystemClock()
        deadline = time.monotonic() + PATIENCE_SECONDS
        while True:
            try:
                gate = await self._found()
                return await call(getattr(gate, method).remote(name, *asked), CALL_SECONDS)
            except (*DEAD, *UNCLEAR) as error:
                if isinstance(error, DEAD):
                    self._handle = None
                if time.monotonic() > deadline:
                    reason = "the gate cannot be reached"
                    raise UnknownOutcomeError(name.stream, reason) from error
            await clock.sleep(_AGAIN_SECONDS)

    async def _found(self) -> Handle:
        """Return the gate; who needs it first starts it, for many sessions never do."""
        if self._handle is None:
            name = self._site.named("gate")
            self._handle = await asyncio.to_thread(
                self._site.create, ApprovalGateActor, name, self._site, restarts=True
            )
        return self._handle
