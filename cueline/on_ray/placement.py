"""Where sessions of this process are driven on Ray: by its own actors, or by an `up`."""

import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from cueline.actors.background_task import Trouble
from cueline.on_ray.actor_factory import actor_factory_of, namespace_of
from cueline.on_ray.attached_runtime import attach_to_up
from cueline.place import Place
from cueline.up_record import find_up
from cueline.wiring import OpenLog


@asynccontextmanager
async def on_ray(
    log: OpenLog, *, scope: set[str], address: str | None = None, on_trouble: Trouble
) -> AsyncIterator[Place]:
    """Drive the sessions of *scope* on a Ray cluster.

    Raises:
        ClusterError: the cluster cannot be used; the message says what to do.
        LogUnavailableError: the log cannot be used there.
    """
    record = find_up(log.url)
    if record is not None:
        yield await attach_to_up(log, record, address)
        return
    # First: Ray reads the environment on import.
    from cueline.cluster.connection import connect_ray  # noqa: PLC0415 - see above

    factory = actor_factory_of(log)
    namespace = namespace_of(factory.log_id)
    # An empty variable counts as not set.
    with connect_ray(address or os.environ.get("RAY_ADDRESS") or None, namespace) as connection:
        from cueline.cluster.command import command  # noqa: PLC0415 - it imports Ray

        async with command(
            connection,
            namespace,
            factory,
            store=log.store,
            board=log.board,
            scope=scope,
            on_trouble=on_trouble,
            hosts=1,
            runners=1,
        ) as there:
            yield there
