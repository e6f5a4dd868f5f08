"""The events that the read models could not take in, because a projection raised."""

from dataclasses import dataclass
from typing import ClassVar

from sqlite_utils import Database

from cueline.projections.row import Names, select


@dataclass(frozen=True, slots=True)
class Fault:
    """One event that is in the log, and missing in the read models."""

    TABLE: ClassVar[str] = "faults"
    KEY: ClassVar[Names] = ("position",)
    INDEXES: ClassVar[tuple[Names, ...]] = ()

    position: int
    name: str
    """Its stream, version and type."""
    error: str
    """What was raised."""


def first_fault(db: Database) -> Fault | None:
    """Return the oldest of these events, if there is one."""
    return next(iter(select(db, Fault, "ORDER BY position", limit=1)), None)
