"""A log of each recorded history, as a file on which commands can be tried."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from itertools import chain
from pathlib import Path

from msgspec import structs

from cueline.events.codec import Codec
from cueline.events.fact import Fact
from cueline.events.store import ANY, Draft, Write
from cueline.stores.backend import backend_of
from tests.histories.facts import APPROVALS, BREAKER, BUDGET, DISPATCHER, FLEET
from tests.histories.session_facts import FAMILY, INBOX, LIFE, TURN
from tests.histories.test_histories import HISTORIES, lines_of

PARENTS = {"session-default/fork": ("session-default/story", 15)}
"""By fork: the stream and version that it goes on from."""
EVERY = 9
"""A session is also cut off after so many events."""

Drafts = Sequence[tuple[Draft, dict[str, str]]]


class SteppingClock:
    """Each look at it takes a second."""

    def __init__(self) -> None:
        self._now = datetime(2026, 1, 2, 12, tzinfo=UTC)

    def now(self) -> datetime:
        self._now += timedelta(seconds=1)
        return self._now

    async def sleep(self, seconds: float) -> None:
        self._now += timedelta(seconds=seconds)


def recorded(path: Path) -> Drafts:
    """Return the events of one history."""
    return [
        (
            Draft(row["type"], row["schema"], row["payload"].encode(), 0, "agent"),
            row["blobs"],
        )
        for row in lines_of(path)
    ]


def by_hand(facts: Sequence[Fact]) -> Drafts:
    """Return *facts* as events."""
    encoded = (Codec().encode(fact, actor="user:ada", occurred_us=0) for fact in facts)
    return [
        (
            structs.replace(each.draft, blobs=tuple(each.blobs)),
            {blob: text.decode() for blob, text in each.blobs.items()},
        )
        for each in encoded
    ]


def scenes() -> dict[str, dict[str, Drafts]]:
    """Return the streams of each log, by the names of the log and of the stream."""
    logs: dict[str, dict[str, Drafts]] = {"cut": {}, "made": made()}
    for path in HISTORIES:
        if path.stem == "facts":
            continue
        category, scene, name = path.stem.split("-", 2)
        events = recorded(path)
        logs.setdefault(scene, {})[f"{category}-default/{name}"] = events
        if category == "session" and scene != "forked":
            for n in range(1, len(events), EVERY):
                cut = f"session-default/{scene.replace('_', '-')}.{name}.{n}"
                logs["cut"][cut] = events[:n]
    return logs


def made() -> dict[str, Drafts]:
    """Return streams of the facts made by hand; each of their beginnings, where that differs."""
    streams = {
        "inbox-default/7f3a": INBOX,
        "session-default/7f3a": [LIFE[1], *TURN, *LIFE[5:]],
        "session-default/run": LIFE[2:4],
        "session-default/planned": LIFE[:1],
        "tree-default/7f3a": FAMILY,
        "approval-default/7f3a.2.0.1": APPROVALS[:1],
        "budget-default/7f3a": BUDGET,
        "dispatcher-default/main": DISPATCHER,
        "fleet-default/main": FLEET,
    }
    for n in range(1, len(BREAKER) + 1):
        streams[f"breaker-default/model.{n}"] = BREAKER[:n]
    for n in range(1, len(APPROVALS)):
        streams[f"approval-default/7f3a.3.0.{n}"] = [APPROVALS[0], APPROVALS[n]]
    return {stream: by_hand(facts) for stream, facts in streams.items()}


async def write_log(path: Path, streams: dict[str, Drafts]) -> None:
    """Write a log of *streams*, three events of each at a time."""
    store = backend_of(str(path)).open(SteppingClock())
    try:
        for text in {text for _, blobs in chain(*streams.values()) for text in blobs.values()}:
            await store.put_blob(text.encode())
        forks = {stream: streams[stream] for stream in streams if stream in PARENTS}
        for some in ({s: streams[s] for s in streams if s not in forks}, forks):
            for begin in range(0, max(map(len, some.values()), default=0), 3):
                writes = [
                    Write(
                        stream,
                        [draft for draft, _ in events[begin : begin + 3]],
                        ANY,
                        after=None if begin else PARENTS.get(stream),
                    )
                    for stream, events in some.items()
                    if events[begin:]
                ]
                await store.append(writes, key=f"{len(some)}-{begin}")
    finally:
        await store.close()
