"""Takes down the actors that a `cueline up` has left on a cluster."""

from datetime import timedelta

from cueline.errors import ClusterError
from cueline.on_ray.attached_runtime import POLL_SECONDS, dispatcher_lives
from cueline.up_record import UpRecord
from cueline.wiring import OpenLog

ORPHAN_SECONDS = 10.0
"""After this time, what ends with a killed `cueline up` has ended."""


async def end_left_behind(
    log: OpenLog, record: UpRecord, *, address: str | None = None, grace_seconds: float
) -> None:
    """Take down what a killed `cueline up` left on a shared cluster, or what Ray keeps there.

    The cluster is at *address*, or else where *record* says.

    Raises:
        ClusterError: some of it lives, and the cluster cannot be reached.
    """
    deadline = log.clock.now() + timedelta(seconds=ORPHAN_SECONDS)
    asked = record.kept_by == "ray" or address is not None
    while asked or await dispatcher_lives(log):
        try:
            await _take_down(address or record.address, record.namespace, grace_seconds)
        except ClusterError:
            # A cluster of its own ends with it.
            if not await dispatcher_lives(log):
                if address is None:
                    return
                raise
            if log.clock.now() > deadline:
                raise
            await log.clock.sleep(POLL_SECONDS)
        else:
            return


async def _take_down(address: str, namespace: str, grace_seconds: float) -> None:
    from cueline.cluster.connection import connect_ray  # noqa: PLC0415 - as above

    with connect_ray(address, namespace):
        from cueline.cluster.up_actors import take_down  # noqa: PLC0415 - it imports Ray

        await take_down(namespace, grace_seconds)
