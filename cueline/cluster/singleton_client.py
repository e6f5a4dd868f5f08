"""The client of a singleton actor whose calls may be repeated: gate, ledger."""

import time
from functools import partial
from typing import Any

from cueline.clock import SystemClock
from cueline.cluster.call import DEAD, UNCLEAR, Handle, ask_head, call, end_frozen_actor
from cueline.cluster.cluster_context import ClusterContext
from cueline.cluster.remote_store import CALL_SECONDS, PATIENCE_SECONDS
from cueline.errors import UnknownOutcomeError

_AGAIN_SECONDS = 0.05


class SingletonClient:
    """Starts the actor at the first call, because many sessions need none; Ray restarts it."""

    def __init__(self, site: ClusterContext, actor: type, role: str) -> None:
        self._site = site
        self._actor = actor
        self._role = role
        self._handle: Handle = None

    async def ask(self, method: str, stream: str, *asked: object) -> Any:
        """Call the actor, and retry while it is away.

        Raises:
            UnknownOutcomeError: it stayed away; try again later.
        """
        clock = SystemClock()
        deadline = time.monotonic() + PATIENCE_SECONDS
        while True:
            try:
                actor = await self._found()
                with end_frozen_actor(actor):
                    return await call(getattr(actor, method).remote(*asked), CALL_SECONDS)
            except (*DEAD, *UNCLEAR) as error:
                if isinstance(error, DEAD):
                    self._handle = None
                if time.monotonic() > deadline:
                    reason = f"the {self._role} cannot be reached"
                    raise UnknownOutcomeError(stream, reason) from error
            await clock.sleep(_AGAIN_SECONDS)

    async def _found(self) -> Handle:
        if self._handle is None:
            name = self._site.named(self._role)
            create = partial(self._site.create, self._actor, name, self._site, restarts=True)
            self._handle = await ask_head(create)
        return self._handle
