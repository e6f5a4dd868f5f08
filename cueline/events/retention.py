"""The facts of what was emptied in one log: stream `retention-<tenant>/main`.

The append of such a fact also empties the events that it names: their rows stay with the hash of
what was in them, so chains, seals and versions go on. The stream has no owner: every append is a
compare-and-set on its version.
"""

from decimal import Decimal
from operator import not_
from typing import Annotated, ClassVar, Final, Literal

from pydantic import AwareDatetime, Field

from cueline.events.fact import Fact, Part, Whole
from cueline.events.stream import stream_name

CATEGORY: Final = "retention"
Dollars = Annotated[Decimal, Field(ge=0)]


class KeptUsage(Part):
    """The usage of one model by an emptied session on one day; see the read model `usage`."""

    provider: str
    model: str
    day: str
    calls: Whole = 0
    failed: Whole = 0
    input_tokens: Whole = 0
    output_tokens: Whole = 0
    cache_read_tokens: Whole = 0
    cache_write_tokens: Whole = 0
    cost: Dollars = Decimal(0)
    assumed_cost: Dollars = Decimal(0)
    estimated_cost: Dollars = Decimal(0)
    saved_cost: Dollars = Decimal(0)
    unpriced: Whole = 0

    def columns(self) -> dict[str, int | Decimal]:
        """Return the values other than 0, by the names of columns."""
        return {name: each for name, each in self if not isinstance(each, str) and each}


class SessionEmptied(Fact):
    """The content of a session was removed from the log: by whom says the actor."""

    FACETS: ClassVar[tuple[str, ...]] = ("session",)

    type: Literal["SessionEmptied"] = "SessionEmptied"
    session: str
    """The stream of the session."""
    cause: Literal["erased", "archived", "cleaned"]
    """Erased: a person wanted it gone. Archived: a file has it. Cleaned: it was old."""
    reason: str = Field(default="", exclude_if=not_)
    streams: dict[str, int]
    """The emptied streams, each with its last emptied version."""
    status: str
    agent: str
    parent: str = Field(default="", exclude_if=not_)
    """The stream of the session that started it; empty: none did."""
    root: str
    """The stream of the topmost session of its tree."""
    started_at: AwareDatetime | None = None
    turns: Whole = 0
    tool_calls: Whole = 0
    usage: tuple[KeptUsage, ...] = ()
    """Its usage, so that the costs of the log stay what they were."""
    archive: str = Field(default="", exclude_if=not_)
    """The file that has the content."""
    archive_hash: str = Field(default="", exclude_if=not_)
    """The sha256 of that file, in hex."""


def retention_stream(tenant: str) -> str:
    """Return the stream of a tenant's emptied sessions."""
    return stream_name(CATEGORY, "main", tenant)
