"""Sums up a fork's past, up to the version where it left its parent."""

from decimal import Decimal

from sqlite_utils import Database

from cueline.projections.row import Row, columns
from cueline.projections.usage_entry import UsageEntry

_COUNTED = columns(UsageEntry)[2 : columns(UsageEntry).index("cost")]
_USED = f"SELECT {', '.join(_COUNTED)}, cost FROM bookings WHERE stream = ? AND version <= ?"  # noqa: S608 - our own names
PARENT = "SELECT parent, parent_version FROM sessions WHERE stream = ?"
"""The stream that a session was forked from, and the version."""


def inherit(db: Database, fork: Row) -> None:
    """Add to *fork* the usage of its ancestors up to the fork."""
    stream, until = fork["parent"], fork["parent_version"]
    seen = {fork["stream"]}
    while stream is not None and stream not in seen:
        seen.add(stream)
        _add(db, fork, stream, until)
        stream, above = db.execute(PARENT, [stream]).fetchone() or (None, 0)
        until = min(until, above)


def _add(db: Database, fork: Row, stream: str, until: int) -> None:
    for *counted, cost in db.execute(_USED, [stream, until]):
        for name, used in zip(_COUNTED, counted, strict=True):
            fork[f"inherited_{name}"] += used
        fork["inherited_cost"] = str(Decimal(fork["inherited_cost"]) + Decimal(cost))
