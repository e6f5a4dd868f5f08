"""Returns the sandboxes of a log, as the log knows them; no back-end is asked."""

from dataclasses import dataclass

from cueline.actors.sandbox_slots import SLOTS_STREAM
from cueline.client.open_read_models import Notice, print_notice, read_models
from cueline.events.codec import not_redacted
from cueline.projections.sandbox import (
    SandboxRow,
    SlotWaitRow,
    count_slots,
    list_sandboxes,
    waiting_for_slots,
)
from cueline.projections.sandbox import State as State  # noqa: PLC0414 - its users' word
from cueline.runtime.open_log import OpenLog


@dataclass(frozen=True, slots=True, kw_only=True)
class PoolStatus:
    """The sandboxes of a log, and the slots that limit how many are started."""

    max_started: int | None
    """The number of slots when one was last asked for or freed; None: no session ever asked."""
    used: int
    """The number of sessions that have a slot."""
    sandboxes: tuple[SandboxRow, ...]
    queue: tuple[SlotWaitRow, ...]
    """The sessions that wait for a slot, the next one first."""


async def pool_of(log: OpenLog, *, with_deleted: bool, notice: Notice = print_notice) -> PoolStatus:
    """Return the sandboxes of a log; those that are deleted or gone only *with_deleted*.

    Raises:
        CorruptEventError: the log is damaged.
    """
    log.check_whole()
    async with read_models(log, notice) as models:
        if models.damage is not None:
            raise models.damage
        counts = count_slots(models.db)
        found = PoolStatus(
            max_started=counts.slots,
            used=counts.used,
            sandboxes=tuple(list_sandboxes(models.db, with_deleted=with_deleted)),
            queue=tuple(waiting_for_slots(models.db)),
        )
    if counts.events != (await log.store.head(SLOTS_STREAM)).version:
        # Events are missing in the table, or are newer than it.
        async for recorded, fact in log.journal().read(SLOTS_STREAM):
            not_redacted(recorded, fact)
    return found
