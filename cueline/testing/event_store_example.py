"""Example events, a clock and readers for the contract of stores."""

import asyncio
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from typing import Any

from msgspec.structs import replace

from cueline.events.chain import Chain
from cueline.events.store import ANY, NO_STREAM, Appended, Draft, EventStore, RecordedEvent, Write

SESSION = "session-default/7f3a"
OTHER = "session-default/81bc"
FORK = "session-default/c0de"
INBOX = "inbox-default/7f3a"
NOON = datetime(2026, 11, 21, 12, tzinfo=UTC)


class SetClock:
    """A clock that stands still until it is set; a sleep by it never ends."""

    def __init__(self, now: datetime = NOON) -> None:
        self._now = now

    def now(self) -> datetime:
        return self._now

    def move(self, by: timedelta) -> None:
        """Set the clock forward, or back."""
        self._now += by

    async def sleep(self, seconds: float) -> None:  # noqa: ARG002 - it stands
        await asyncio.Event().wait()


def fact(payload: bytes = b'{"tool":"search"}', **rest: Any) -> Draft:
    """Return an event that is not appended yet."""
    return replace(Draft("ToolStarted", 1, payload, 1_000, "agent"), **rest)


def facts(count: int) -> list[Draft]:
    """Return *count* different events."""
    return [fact(b"%d" % number) for number in range(count)]


async def begin(store: EventStore, stream: str = SESSION, *, events: int = 1) -> Appended:
    """Append the first *events* of a stream that is never acquired."""
    return await store.append([Write(stream, facts(events), NO_STREAM)], key="begin")


async def empty(store: EventStore, stream: str, version: int) -> None:
    """Empty the payload of an event, by an append to another stream."""
    write = Write(INBOX, [fact()], ANY, empties=[(stream, version)])
    await store.append([write], key=f"empty {stream} {version}")


async def all_of(store: EventStore, stream: str) -> list[RecordedEvent]:
    """Return a stream's events."""
    return [event async for event in store.read(stream)]


async def whole_log(store: EventStore) -> list[RecordedEvent]:
    """Return all events of the log."""
    return [event async for event in store.read_all()]


def payloads(events: Iterable[RecordedEvent]) -> list[bytes | None]:
    """Return the payloads of the events."""
    return [event.payload for event in events]


def positions(events: Iterable[RecordedEvent]) -> list[int]:
    """Return the positions of the events."""
    return [event.position for event in events]


def versions(events: Iterable[RecordedEvent]) -> list[int]:
    """Return the versions of the events."""
    return [event.version for event in events]


def check_chain(events: Iterable[RecordedEvent]) -> Chain:
    """Check the chain of a stream's events from the beginning, and return it."""
    chain = Chain()
    for event in events:
        chain.check(event)
    return chain
