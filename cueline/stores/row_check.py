"""Checks the log's tables beside the events: heads, epochs and keys.

The hash chain covers only the events, and the next append relies on the rest.
"""

from collections.abc import Callable, Iterable, Iterator
from typing import Any

from cueline.errors import CorruptEventError
from cueline.stores.tables import LastEvent, StreamRow, head_fault

_HEADS = """
SELECT s.id, s.name, s.version, s.epoch, s.head_hash, s.owner,
    e.version, e.position, e.epoch, e.hash
FROM streams s LEFT JOIN events e
ON e.stream = s.id AND e.version = (SELECT max(version) FROM events WHERE stream = s.id)
"""
_MISPLACED = """
SELECT coalesce(s.name, '?'), first.version, appends.first
FROM appends LEFT JOIN streams s ON s.id = appends.stream
LEFT JOIN events first ON first.position = appends.first
LEFT JOIN events last ON last.position = appends.first + appends.count - 1
LEFT JOIN events next ON next.position = appends.first + appends.count
WHERE (
    first.stream = appends.stream AND first.seq = 0 AND last.seq = appends.count - 1
    AND coalesce(next.seq, 0) = 0
) IS NOT TRUE
"""
_KEYLESS = """
SELECT s.name, e.version, e.position FROM events e JOIN streams s ON s.id = e.stream
WHERE e.seq = 0 AND e.epoch = 0 AND e.position NOT IN (SELECT first FROM appends)
"""


Rows = Callable[[str], Iterable[tuple[Any, ...]]]
"""Returns the rows of a query, all in one transaction."""


def faults(rows: Rows) -> Iterator[CorruptEventError]:
    """Yield the contradictions."""
    yield from _heads(rows)
    for stream, version, position in rows(_MISPLACED):
        reason = "no append with a key begins, or ends, where its row says"
        yield CorruptEventError(stream, version or 0, position, reason)
    # An append without an epoch has a key: without its row it could be repeated.
    for stream, version, position in rows(_KEYLESS):
        yield CorruptEventError(stream, version, position, "the key of its append is missing")


def _heads(rows: Rows) -> Iterator[CorruptEventError]:
    for id_, name, version, epoch, head, owner, *event in rows(_HEADS):
        last = None if event[0] is None else LastEvent(*event)
        fault = head_fault(StreamRow(id_, name, version, epoch, head), last)
        if fault is None and (owner is None) != (epoch == 0):
            fault = f"the epoch of its stream is {epoch}, and its owner is {owner}"
        if fault is not None:
            at, position = (version, 0) if last is None else last[:2]
            yield CorruptEventError(name, at, position, fault)
