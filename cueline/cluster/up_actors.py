"""The names of the actors of `cueline up`, and their end."""

from contextlib import suppress
from functools import partial

import ray

from cueline.cluster.call import DEAD, UNCLEAR, Handle, ask_head, call
from cueline.errors import CuelineError

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
