"""The gate or ledger as a singleton actor, and its client, which repeats calls."""

from functools import partial
from typing import Any, ClassVar

from ray.exceptions import RayTaskError

from cueline.cluster.call import UNCLEAR, ask_head
from cueline.cluster.cluster_context import ClusterContext
from cueline.cluster.proxy import Proxy
from cueline.cluster.remote_store import log_of
from cueline.errors import ClusterError, UnknownOutcomeError


class SingletonActor:
    """Creates its gate or ledger at the first call. Ray restarts the actor."""

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

    def __init__(self, context: ClusterContext, actor: type[SingletonActor]) -> None:
        create = partial(context.create, actor, context.named(actor.role), context, restarts=True)
        super().__init__(partial(ask_head, create))
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
