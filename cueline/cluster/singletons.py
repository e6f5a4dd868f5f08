"""Ledger, gate and pool of sandboxes as Ray actors, and their clients for session hosts."""

from datetime import datetime
from functools import partial
from typing import Any, ClassVar, cast

from ray.exceptions import RayTaskError

from cueline.actors.approval_gate import ApprovalName, Opened
from cueline.actors.sandbox_life import ACT_SECONDS
from cueline.actors.sandbox_pool import TRIES, SandboxReady, SandboxWish, SlotWait
from cueline.actors.sandbox_slots import SLOTS_STREAM
from cueline.cluster.cluster_context import ClusterContext
from cueline.cluster.proxy import CALL_SECONDS, Proxy
from cueline.cluster.ray_call import UNCLEAR, ask_head
from cueline.cluster.remote_store import log_of
from cueline.deciders.approval import Vote
from cueline.deciders.budget import Closing, Raise, Release, Reserve, ReserveAnswer, Settle
from cueline.errors import ClusterError, UnknownOutcomeError
from cueline.events.approval import ApprovalOpened, SupersedeCode
from cueline.events.session import GateAnswer


class SingletonActor:
    """Creates its gate, ledger or pool at the first call. Ray restarts the actor."""

    role: ClassVar[str]
    """The method of `ActorFactory` that creates the object."""

    def __init__(self, context: ClusterContext) -> None:
        self._context = context
        self._made: object = None

    async def ask(self, method: str, *asked: object) -> Any:
        """Return the answer of its *method*."""
        if self._made is None:
            self._made = getattr(self._context.factory, self.role)(log_of(self._context)[0])
        return await getattr(self._made, method)(*asked)


class SingletonClient(Proxy):
    """Starts the actor at the first call, because many sessions need none; Ray restarts it."""

    def __init__(
        self, context: ClusterContext, actor: type[SingletonActor], within: float = CALL_SECONDS
    ) -> None:
        create = partial(context.create, actor, context.named(actor.role), context, restarts=True)
        super().__init__(partial(ask_head, create), within=within)
        self._role = actor.role

    async def ask(self, method: str, stream: str, *asked: object) -> Any:
        """Call the actor, and retry while it is away.

        Raises:
            UnknownOutcomeError: it stayed away; try again later.
            RuntimeError: a rule raised; a repetition does not help.
        """
        try:
            return await self.call_again("ask", method, *asked)
        except UNCLEAR as error:
            reason = f"the {self._role} cannot be reached"
            raise UnknownOutcomeError(stream, reason) from error
        except ClusterError as error:
            if not isinstance(error.__cause__, RayTaskError):
                raise
            raise RuntimeError(f"the {self._role} failed: {error}") from error


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


class SandboxPoolActor(SingletonActor):
    """Holds a `SandboxPool`, which asks the log and the back-ends for its state."""

    role = "sandboxes"


class RemoteSandboxes:
    """See `SandboxPort`. Each call may be repeated, and is repeated while the pool is away.

    Raises:
        UnknownOutcomeError: it stayed away; ask again later.
    """

    def __init__(self, context: ClusterContext) -> None:
        self._pool = SingletonClient(context, SandboxPoolActor, ACT_SECONDS * (TRIES + 1))

    async def attach(self, wish: SandboxWish) -> SandboxReady | SlotWait:
        return cast("SandboxReady | SlotWait", await self._pool.ask("attach", wish.session, wish))

    async def watch(self) -> None:
        """Let the pool look after its sandboxes, also those of an earlier cluster."""
        await self._pool.ask("watch", SLOTS_STREAM)
