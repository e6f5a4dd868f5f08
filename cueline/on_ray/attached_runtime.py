"""Attaches to the running `cueline up` of a log."""

import os
from collections.abc import Sequence
from datetime import timedelta
from functools import partial

from cueline.actors.checked_tools import CheckedTools
from cueline.actors.presence import living
from cueline.errors import ClusterError
from cueline.events.agent import AgentSpec
from cueline.place import Place
from cueline.up_record import UpRecord
from cueline.wiring import OpenLog

ANSWER_SECONDS = 15.0
"""How long a dispatcher may take to restart."""
POLL_SECONDS = 0.05


class Attached(Place):
    """A running `cueline up`. It notices new inbox messages by itself."""

    def __init__(self, log: OpenLog, record: UpRecord) -> None:
        super().__init__(log.url)
        self._log = log
        self._record = record
        self._checked = CheckedTools()

    async def check_tools(self, agents: Sequence[AgentSpec]) -> None:
        """See `Place.check_tools`: RAY_ADDRESS says that it is the cluster of this process."""
        if os.environ.get("RAY_ADDRESS") != self._record.address:
            return
        present = await living(self._log.board, self._log.clock.now())
        runners = [each.incarnation for each in present if each.role == "runner"]
        await self._checked.check(agents, runners, self._ask_runners)

    async def _ask_runners(self, agents: Sequence[AgentSpec]) -> None:
        from cueline.cluster.connection import connected_ray  # noqa: PLC0415 - see `placement.on_ray`

        address, namespace = self._record.address, self._record.namespace
        with connected_ray(address, namespace):
            from cueline.cluster.call import ask_head  # noqa: PLC0415 - it imports Ray
            from cueline.cluster.node_check import check_tools, runners_in  # noqa: PLC0415 - as above
            from cueline.cluster.up_actors import OWNER  # noqa: PLC0415 - as above

            runners = await ask_head(partial(runners_in, namespace, OWNER))
            await check_tools(runners, agents)


async def attach_to_up(log: OpenLog, record: UpRecord, address: str | None) -> Attached:
    """Return the `cueline up` of *record*, if its dispatcher answers.

    Raises:
        ClusterError: it does not answer, or another cluster was named.
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
