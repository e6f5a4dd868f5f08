"""Places on Ray: the actors of this process, and a running `cueline up`."""

import os
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from datetime import timedelta
from functools import partial

from cueline.actors.background_task import Trouble
from cueline.actors.presence import living
from cueline.errors import ClusterError
from cueline.events.agent import AgentSpec
from cueline.runtime.actor_factory import actor_factory_of, namespace_of
from cueline.runtime.open_log import OpenLog
from cueline.runtime.place import CheckedTools, Place
from cueline.runtime.up_record import UpRecord, find_up

ANSWER_SECONDS = 15.0
"""How long a dispatcher may take to restart."""
POLL_SECONDS = 0.05


class Attached(Place):
    """A running `cueline up`, which notices new inbox messages without a call."""

    def __init__(self, log: OpenLog, record: UpRecord) -> None:
        super().__init__(log.url)
        self._log = log
        self._record = record
        self._checked = CheckedTools()

    async def check_tools(self, agents: Sequence[AgentSpec]) -> None:
        """See `Place.check_tools`; requires that RAY_ADDRESS names the cluster of this `up`."""
        if os.environ.get("RAY_ADDRESS") != self._record.address:
            return
        present = await living(self._log.board, self._log.clock.now())
        runners = [each.incarnation for each in present if each.role == "runner"]
        await self._checked.check(agents, runners, self._ask_runners)

    async def _ask_runners(self, agents: Sequence[AgentSpec]) -> None:
        from cueline.cluster.connection import connected_ray  # noqa: PLC0415 - see `on_ray`

        address, namespace = self._record.address, self._record.namespace
        with connected_ray(address, namespace):
            from cueline.cluster.cluster_context import OWNER  # noqa: PLC0415 - as above
            from cueline.cluster.node_check import check_tools, runners_in  # noqa: PLC0415 - as above
            from cueline.cluster.ray_call import ask_head  # noqa: PLC0415 - it imports Ray

            runners = await ask_head(partial(runners_in, namespace, OWNER))
            await check_tools(runners, agents)


async def attach_to_up(log: OpenLog, record: UpRecord, address: str | None) -> Attached:
    """Return the `cueline up` of *record*, if its dispatcher answers.

    Raises:
        ClusterError: the dispatcher does not answer, or another cluster was named.
    """
    if address not in (None, "auto", record.address):
        reason = (
            f"this log is driven by `cueline up` at {record.address}: name that, or take it down"
        )
        raise ClusterError(str(address), reason)
    until = log.clock.now() + timedelta(seconds=ANSWER_SECONDS)
    while log.clock.now() < until:
        if await dispatcher_lives(log):
            return Attached(log, record)
        await log.clock.sleep(POLL_SECONDS)
    again = "`cueline up` starts it again, " if record.kept_by == "ray" else ""
    reason = f"{record.keeper_text} does not answer: {again}`cueline down` ends it"
    raise ClusterError(record.address, reason)


async def dispatcher_lives(log: OpenLog) -> bool:
    """Whether the log has a living dispatcher."""
    return any(each.role == "dispatcher" for each in await living(log.board, log.clock.now()))


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


async def count_nodes(address: str) -> int:
    """Return the number of nodes of the cluster at *address*, all with this version of cueline.

    Raises:
        ClusterError: the cluster cannot be joined, or nodes have another version.
    """
    from cueline.cluster.connection import connect_ray  # noqa: PLC0415 - see `on_ray`

    with connect_ray(address, "cueline"):
        from cueline.cluster.node_check import check_nodes  # noqa: PLC0415 - it imports Ray

        return await check_nodes(address)
