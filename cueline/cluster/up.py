"""Starts and ends the actors of `cueline up`, which outlive their process on a cluster."""

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from functools import partial

import ray
from ray.exceptions import RayError

from cueline.actors.presence import machine_name
from cueline.clock import SystemClock
from cueline.cluster.cluster_context import (
    DISPATCHERS,
    OWNER,
    STOP_SECONDS,
    VERSION,
    ClusterContext,
    actors_of,
    end_actors,
)
from cueline.cluster.connection import RayConnection
from cueline.cluster.dispatcher import DispatcherActor, DispatcherSettings, Started
from cueline.cluster.node_check import check_nodes
from cueline.cluster.proxy import Proxy
from cueline.cluster.ray_call import DEAD, UNCLEAR, Handle, ask_head, call, end_frozen_actor, poll
from cueline.cluster.runner_directory import living_nodes
from cueline.cluster.server import ServerActor
from cueline.errors import ClusterError, CuelineError
from cueline.events.store import Presence
from cueline.runtime.actor_factory import ActorFactory

START_SECONDS = 90.0
RAY_SECONDS = 5.0
_AGAIN_SECONDS = 0.5


class Up:
    """A log's detached actors, for the process that keeps them."""

    def __init__(
        self, connection: RayConnection, namespace: str, factory: ActorFactory, keeper: Presence
    ) -> None:
        self.namespace = namespace
        """The namespace of the actors in Ray."""
        self._connection = connection
        self._keeper = keeper
        self._context = ClusterContext(
            namespace=namespace,
            node=connection.node,
            address=connection.node_address,
            machine=machine_name(),
            owner=OWNER,
            detached=True,
            factory=factory,
        )
        self._dispatcher: Handle = None
        self._has_log = False
        """Whether no other `up` can have the log: then all left actors of any version are ours."""

    async def start(self, wanted: DispatcherSettings, abandoned: str | None = None) -> Started:
        """Start the dispatcher, which starts the other actors; see `gives_way` for *abandoned*.

        Raises:
            ClusterError: no dispatcher starts, or another has the log; the message says which.
            LogUnavailableError: the cluster cannot open the log.
        """
        if not self._connection.ours:
            await check_nodes(self._connection.address)
        try:
            await self._relieve_others()
            self._dispatcher = await self._own_dispatcher(wanted, abandoned)
            started: Started = await call(self._dispatcher.start.remote(), START_SECONDS)
        except (*DEAD, *UNCLEAR) as error:
            reason = f"the dispatcher does not start ({type(error).__name__})"
            raise ClusterError("the cluster", reason) from error
        self._has_log = True
        return started

    async def _own_dispatcher(self, wanted: DispatcherSettings, abandoned: str | None) -> Handle:
        """Return a dispatcher that has not started; it finds actors of a killed keeper."""
        dispatcher = self._new_dispatcher(wanted)
        if not await self._ask(dispatcher, "gives_way", self._keeper, abandoned):
            return dispatcher
        ray.kill(dispatcher)
        return self._new_dispatcher(wanted)

    async def _relieve_others(self) -> None:
        """End the dispatchers of other versions; ours drains their hosts and runners.

        Raises:
            ClusterError: one has a keeper that lives.
        """
        ours = self._context.named("dispatcher")
        for name in await ask_head(partial(actors_of, self.namespace, DISPATCHERS)):
            if name == ours:
                continue
            with suppress(*DEAD, ValueError):
                other = await ask_head(partial(ray.get_actor, name, self.namespace))
                await self._ask(other, "hand_over")
                ray.kill(other)

    async def _ask(self, dispatcher: Handle, method: str, *asked: object) -> object:
        """Call a dispatcher until it answers: it may be frozen, or restarting."""
        proxy = Proxy(
            None,
            dispatcher,
            patience=START_SECONDS,
            within=START_SECONDS,
            interval=_AGAIN_SECONDS,
        )
        return await proxy.call_again(method, *asked)

    def _new_dispatcher(self, wanted: DispatcherSettings) -> Handle:
        """Return a new dispatcher, or the one that Ray has under this name."""
        name = self._context.named("dispatcher")
        made_of = (self._context, wanted, self._keeper)
        return self._context.create(DispatcherActor, name, *made_of, restarts=True)

    async def serve(self, words: Sequence[str], folder: str) -> str:
        """Start the HTTP server by the command *words* in a folder, and return its URL.

        Ray starts it again where it dies, and it ends with the other actors.

        Raises:
            ClusterError: it does not start; the message says why.
        """
        name = self._context.named("server")
        server = self._context.create(ServerActor, name, words, folder, restarts=True)
        try:
            url: str = await call(server.start.remote(), START_SECONDS)
        except (*DEAD, *UNCLEAR) as error:
            reason = f"it does not start ({type(error).__name__})"
            raise ClusterError("the server", reason) from error
        return url

    async def watch(self) -> list[str]:
        """Wait up to about half a minute for errors, and return them.

        Raises:
            ClusterError: the dispatcher has ended; start it again.
        """
        clock = SystemClock()
        try:
            with end_frozen_actor(self._dispatcher):
                told: list[str] = await poll(self._dispatcher.troubles)
        except DEAD as error:
            raise ClusterError("the dispatcher", "it has ended") from error
        except UNCLEAR:
            await self._look_for_ray()
            await clock.sleep(_AGAIN_SECONDS)
            return []
        return told

    async def _look_for_ray(self) -> None:
        """Raise `ClusterError` if Ray has ended here, so that no actor can start."""
        with suppress(RayError, TimeoutError):  # unknown while its head is away
            async with asyncio.timeout(RAY_SECONDS):
                if self._context.node not in await living_nodes():
                    reason = "it has ended on this machine; `cueline up` starts it again"
                    raise ClusterError("Ray", reason)

    async def stop(self) -> None:
        """Let all sessions wait, and end all own actors."""
        if self._dispatcher is None:
            return
        with suppress(*DEAD, *UNCLEAR, CuelineError):
            grace = self._context.factory.grace_seconds
            await call(self._dispatcher.stop.remote(grace), grace + STOP_SECONDS)
        with suppress(TimeoutError):  # the head is away, and may be gone
            async with asyncio.timeout(STOP_SECONDS):
                version = None if self._has_log else VERSION
                await ask_head(partial(end_actors, self.namespace, OWNER, version))
