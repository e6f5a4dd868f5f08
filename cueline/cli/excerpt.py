"""The end of a long session, and what the read models say of all of it."""

from contextlib import closing
from decimal import Decimal

from cueline.actors.followed import Followed, Past
from cueline.actors.stream_end import last_of
from cueline.cli import opened
from cueline.console.tally import Tally
from cueline.errors import CorruptEventError, CuelineError, UnknownEventTypeError
from cueline.events.journal import Journal
from cueline.events.log_url import LogUrl
from cueline.events.message import Usage
from cueline.events.store import EventStore, from_us
from cueline.projections.session import Session, find_session
from cueline.stores.backend import backend_of

LAST = 100
"""About so many events are shown of a session that has more than twice as many."""
_BEHIND = 10_000
"""Read models that lack more events than these take too long to bring up to date."""


async def read_ends(journal: Journal, stream: str) -> tuple[Followed, Past] | None:
    """Return a long session as its first event and its last turns tell it, and these events.

    None where it is not long, or has to be read whole because it cannot be read there.
    """
    followed, past = Followed(stream, journal), Past()
    try:
        length = (await journal.store.head(stream)).version
        begins = await last_of(journal.store, stream, {"ModelRequested"}, length - LAST)
        if begins <= LAST:
            return None
        past += [pair async for pair in followed.read(until=1)]
        await followed.skip(begins - 1)
        past += [pair async for pair in followed.read()]
    except (CorruptEventError, UnknownEventTypeError):
        return None
    return followed, past


async def read_sums(log: LogUrl, store: EventStore, stream: str) -> Tally | None:
    """Return what a session used, where the read models are nearly up to date."""
    try:
        with closing(backend_of(log).open_views()) as views:
            behind = await store.last_position() - views.checkpoint.position
        if behind > _BEHIND:
            return None
        async with opened.views_of(log, store) as views:
            row = find_session(views.db, stream)
    except CuelineError:
        return None
    return None if row is None else _tally(row)


def _tally(row: Session) -> Tally:
    inherited = Tally(turns=row.inherited_turns, cost=Decimal(row.inherited_cost))
    return Tally(
        turns=row.turns,
        tool_calls=row.tool_calls,
        usage=Usage(
            input=row.input_tokens,
            output=row.output_tokens,
            cache_read=row.cache_read_tokens,
            cache_write=row.cache_write_tokens,
        ),
        cost=row.usd,
        estimated=Decimal(row.estimated_cost),
        assumed=Decimal(row.assumed_cost),
        unpriced=row.unpriced,
        partial=row.partial,
        began_at=None if row.started_us is None else from_us(row.started_us),
        updated_at=row.updated_at,
        inherited=inherited if row.inherited_turns else None,
    )
