"""The actors of one log on a cluster: their names, their start and their end."""

import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from importlib.metadata import version
from typing import Any

import ray

from cueline.clock import SystemClock
from cueline.cluster.ray_call import DEAD, UNCLEAR, Handle, ask_head, call
from cueline.errors import ClusterError, CuelineError
from cueline.runtime.actor_factory import ActorFactory

VERSION = version("cueline")
NODE_LABEL = "ray.io/node-id"
"""Ray's own label of each node."""
CONCURRENCY = 20_000
"""The most calls that wait in an async actor; beyond them it does not even answer a ping."""
_RESOLVE_SECONDS = 0.05


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterContext:
    """The place and the owner of one dispatcher's actors."""

    namespace: str
    node: str
    """The Ray node on the machine with the log's file."""
    address: str
    """The IP address of that node; another node at this address may take its place."""
    machine: str
    """The id of that machine, as in a workspace."""
    owner: str
    """The owner of the actors: `up`, or the incarnation of their command."""
    detached: bool
    """Whether the actors outlive the process that creates them."""
    factory: ActorFactory

    def named(self, role: str) -> str:
        """Return the name of a singleton actor."""
        # With the version: under an old name, Ray would return a living actor of old code.
        return f"{self.owner}/{role}@{VERSION}"

    def create(
        self,
        actor: type,
        name: str,
        *arguments: object,
        placement: Mapping[str, Any] | None = None,
        restarts: bool = False,
    ) -> Handle:
        """Start *actor* by its *placement*; the actor runs when it first answers.

        *placement* has Ray's options for resources and node. By default, the actor takes no
        resources, and is beside the log if that node is alive.
        """
        # Labels, since Ray ignores a soft affinity of actors that take no CPU.
        here = {
            "num_cpus": 0,
            "label_selector": {NODE_LABEL: self.node},
            "fallback_strategy": [{"label_selector": {NODE_LABEL: f"!{self.node}"}}],
        }
        options: dict[str, Any] = {
            "name": name,
            "namespace": self.namespace,
            "get_if_exists": True,
            "lifetime": "detached" if self.detached else None,
            # Hosts and runners are replaced by a new incarnation, never restarted.
            "max_restarts": -1 if restarts else 0,
            # Ray cannot find out whether a lost call took effect; the caller repeats it by its key.
            "max_task_retries": 0,
            "max_concurrency": CONCURRENCY,
            # Ray's own record of each call grows without bound in its head process.
            "enable_task_events": False,
            **(placement or here),
        }
        return ray.remote(actor).options(**options).remote(*arguments)

    async def find(self, name: str, within: float) -> Handle:
        """Return the actor of that name, waiting for it up to *within* seconds.

        Raises:
            ClusterError: there is no such actor; its supervisor has to start it.
        """
        clock = SystemClock()
        deadline = time.monotonic() + within
        while True:
            try:
                return await ask_head(partial(ray.get_actor, name, self.namespace))
            except ValueError as error:
                if time.monotonic() > deadline:
                    raise ClusterError(name, "there is no such actor") from error
            await clock.sleep(_RESOLVE_SECONDS)


OWNER = "up"
"""The owner of the actors of `cueline up`."""
DISPATCHERS = f"{OWNER}/dispatcher@"
"""The prefix of their names; the version follows."""
STOP_SECONDS = 15.0
"""Time to end the fleet, beside the grace time of calls in flight."""


async def take_down(namespace: str, grace_seconds: float) -> None:
    """Let all sessions wait, and end `up` in *namespace*, of any version."""
    for name in await ask_head(partial(actors_of, namespace, DISPATCHERS)):
        with suppress(*DEAD, *UNCLEAR, CuelineError, ValueError):
            dispatcher: Handle = await ask_head(partial(ray.get_actor, name, namespace))
            stopping = dispatcher.stop.remote(grace_seconds)
            await call(stopping, grace_seconds + STOP_SECONDS)
    await ask_head(partial(end_actors, namespace, OWNER))


def end_actors(namespace: str, owner: str, version: str | None = None) -> int:
    """Kill *owner*'s actors in *namespace*, of one version or all; return their number."""
    names = [
        name
        for name in actors_of(namespace, f"{owner}/")
        if version is None or name.endswith(f"@{version}")
    ]
    # The dispatcher first: it would replace the others.
    for name in sorted(names, key=lambda name: "/dispatcher@" not in name):
        with suppress(ValueError):
            ray.kill(ray.get_actor(name, namespace))
    return len(names)


def actors_of(namespace: str, prefix: str) -> list[str]:
    """Return the names of the actors in *namespace* that begin with *prefix*, such as `up/`."""
    return [
        actor["name"]
        for actor in ray.util.list_named_actors(all_namespaces=True)
        if actor["namespace"] == namespace and actor["name"].startswith(prefix)
    ]
