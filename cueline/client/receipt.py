"""What a client says of a wish: what was recorded, and whether anybody is there to read it."""

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
"""Who reads what was recorded: this process, a running `cueline up`, another process, nobody."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Receipt:
    """What became of a wish."""

    session: str
    """The session's id."""
    message: str
    """The type of the inbox message that says it."""
    recorded: bool
    """False: it was said before, and once is enough."""
    version: int | None = None
    """Of the session's inbox, with this message; None where nothing was recorded."""
    position: int | None = None
    """Of the log, likewise; None also of a start."""
    read_by: ReadBy

    def to_json(self) -> dict[str, object]:
        """Return it as JSON; `docs/reference/client.md` has the fields."""
        told: dict[str, object] = document(self)
        return told


@dataclass(frozen=True, slots=True, kw_only=True)
class StartReceipt(Receipt):
    """What became of the wish for a session."""

    starts_at: datetime | None = None
    """When its work starts; None: at once."""
    skipped: str = ""
    """The local time that was asked for, if the clocks skip it: it starts as much later."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PauseReceipt(Receipt):
    """What became of the wish for a pause."""

    why: str = ""
    """Why the session is held, where that was so before."""
    in_flight: bool = False
    """Whether what it does now has to finish first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StopReceipt(Receipt):
    """What became of the wish for an end."""

    status: str
    """Of the session, when the wish was recorded, or when this process had ended it."""
    ended_before: bool = False
    """Whether there was nothing to end."""
    in_doubt: Mapping[str, str]
    """The tool of each call whose outcome nobody knows, by effect."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DecisionReceipt(Receipt):
    """What became of a person's decision."""

    approval: str
    verdict: Literal["grant", "deny"]
    by: str
    resolution: Resolution | None = None
    votes: int = 1
    """So many people have to allow it."""


async def reader_of(client: Connection, stream: str) -> ReadBy:
    """Return who reads the inbox of a session."""
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
    """Return what became of the wish for the session *stream*."""
    told = await receipt_fields(client, stream, "StartAsked", None)
    told |= {"recorded": True, "version": 1}
    if asked.schedule is not None:
        told |= {"starts_at": asked.schedule.at, "skipped": asked.schedule.skipped}
    return StartReceipt(**told)


async def receipt_fields(
    client: Connection, stream: str, message: str, at: Appended | None
) -> dict[str, Any]:
    """Return what each receipt says of a *message*, which was appended *at*; None: it was not."""
    return {
        "session": shown(stream),
        "message": message,
        "recorded": at is not None,
        "version": None if at is None else at.versions[0],
        "position": None if at is None else at.position,
        "read_by": await reader_of(client, stream),
    }
