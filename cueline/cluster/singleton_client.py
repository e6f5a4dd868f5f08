"""A singleton actor whose calls may be repeated, and its client: gate, ledger."""

import time
from functools import partial
from typing import Any, ClassVar

from ray.exceptions import RayTaskError

from cueline.clock import SystemClock
from cueline.cluster.call import DEAD, UNCLEAR, Handle, ask_head, call, end_frozen_actor
from cueline.cluster.cluster_context import ClusterContext
from cueline.cluster.remote_store import CALL_SECONDS, PATIENCE_SECONDS, log_of
from cueline.errors import ClusterError, UnknownOutcomeError

_AGAIN_SECONDS = 0.05


class SingletonActor:
    """Holds what answers, and makes it at the first call. Ray restarts it."""

    role: ClassVar[str]
    """Of what it holds: the method of `ActorFactory` that makes it."""

    def __init__(self, context: ClusterContext) -> None:
        self._context = context
        self._made: object = None

    async def ask(self, method: str, *asked: object) -> Any:
        """Return what its *method* answers."""
        if self._made is None:
            self._made = getattr(self._context.factory, self.role)(log_of(self._context)[0])
        return await getattr(self._made, method)(*asked)


class SingletonClient:
    """Starts the actor at the first call, because many sessions need none; Ray restarts it."""

    def __init__(self, context: ClusterContext, actor: type[SingletonActor]) -> None:
        self._context = context
        self._actor = actor
        self._handle: Handle = None

    async def ask(self, method: str, stream: str, *asked: object) -> Any:
        """Call the actor, and retry while it is away.

        Raises:
            UnknownOutcomeError: it stayed away; try again later.
            RuntimeError: a rule raised there, which another try does not mend.
        """
        clock = SystemClock()
        deadline = time.monotonic() + PATIENCE_SECONDS
        while True:
            try:
                actor = await self._found()
                with end_frozen_actor(actor):
                    return await call(actor.ask.remote(method, *asked), CALL_SECONDS)
            except (*DEAD, *UNCLEAR) as error:
                if isinstance(error, DEAD):
                    self._handle = None
                if time.monotonic() > deadline:
                    reason = f"the {self._actor.role} cannot be reached"
                    raise UnknownOutcomeError(stream, reason) from error
            except ClusterError as error:
                if not isinstance(error.__cause__, RayTaskError):
                    raise
                raise RuntimeError(f"the {self._actor.role} failed: {error}") from error
            await clock.sleep(_AGAIN_SECONDS)

    async def _found(self) -> Handle:
        if self._handle is None:
            name = self._context.named(self._actor.role)
            create = partial(self._context.create, self._actor, name, self._context, restarts=True)
            self._handle = await ask_head(create)
        return self._handle
