"""The receipts of wishes: the recorded message, and the process that will read it."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal

from cueline.actors.session_owner import owner_of
from cueline.client.context import Connection
from cueline.client.document import document
from cueline.events.inbox import Resolution, StartAsked
from cueline.events.store import Appended
from cueline.events.stream import shown
from cueline.runtime.up_record import find_up

ReadBy = Literal["here", "up", "elsewhere", "nobody"]
"""The reader of a message: this process, a running `cueline up`, another process, or none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Receipt:
    """The receipt of a wish."""

    session: str
    """The session's id."""
    message: str
    """The type of the inbox message."""
    recorded: bool
    """False: the same message was recorded before."""
    version: int | None = None
    """The version of the session's inbox with this message; None: nothing was recorded."""
    position: int | None = None
    """The position of the log with this message; None also for a start."""
    read_by: ReadBy

    def to_json(self) -> dict[str, object]:
        """Return it as JSON; `docs/reference/client.md` has the fields."""
        told: dict[str, object] = document(self)
        return told


@dataclass(frozen=True, slots=True, kw_only=True)
class StartReceipt(Receipt):
    """The receipt of a start."""

    starts_at: datetime | None = None
    """The time at which its work starts; None: at once."""
    skipped: str = ""
    """The requested local time, if the clocks skip it; the start is later by the skipped time."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PauseReceipt(Receipt):
    """The receipt of a pause."""

    why: str = ""
    """The reason why the session already waited."""
    in_flight: bool = False
    """Whether running calls have to finish first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StopReceipt(Receipt):
    """The receipt of a stop."""

    status: str
    """The status of the session when the wish was recorded, or after this process has ended it."""
    ended_before: bool = False
    """Whether the session had already ended."""
    in_doubt: Mapping[str, str]
    """The tools of calls with unknown outcome, by effect."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DecisionReceipt(Receipt):
    """The receipt of a decision."""

    approval: str
    verdict: Literal["grant", "deny"]
    by: str
    resolution: Resolution | None = None
    votes: int = 1
    """The number of people who have to allow the call."""


async def reader_of(client: Connection, stream: str) -> ReadBy:
    """Return the reader of a session's inbox."""
    log, place = client.log, client.place
    owner = await owner_of(log.store, log.board, stream, log.clock.now())
    if owner is not None and place.has(owner.incarnation):
        return "here"
    if find_up(log.url) is not None:
        return "up"
    if owner is not None:
        return "elsewhere"
    return "here" if place.takes_up(stream) else "nobody"


async def receipt_of_start(client: Connection, stream: str, asked: StartAsked) -> StartReceipt:
    """Return the receipt of the start of session *stream*."""
    told = await receipt_fields(client, stream, "StartAsked", None)
    told |= {"recorded": True, "version": 1}
    if asked.schedule is not None:
        told |= {"starts_at": asked.schedule.at, "skipped": asked.schedule.skipped}
    return StartReceipt(**told)


async def receipt_fields(
    client: Connection, stream: str, message: str, at: Appended | None
) -> dict[str, Any]:
    """Return the fields of all receipts for a *message* appended *at*; None: not appended."""
    return {
        "session": shown(stream),
        "message": message,
        "recorded": at is not None,
        "version": None if at is None else at.versions[0],
        "position": None if at is None else at.position,
        "read_by": await reader_of(client, stream),
    }
