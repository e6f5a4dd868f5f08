"""Contract tests of readers."""

# ruff: noqa: SIM300 - a test's name is the fact; what is expected stands first

import asyncio
from collections.abc import AsyncIterator, Collection

import pytest

from cueline.errors import LogUnavailableError
from cueline.events.store import ANY, NO_STREAM, EventStore, RecordedEvent, Write
from cueline.stores.waiting import take_turns
from cueline.testing.event_store_example import (
    INBOX,
    OTHER,
    SESSION,
    all_of,
    begin,
    check_chain,
    empty,
    fact,
    facts,
    payloads,
    positions,
    versions,
    whole_log,
)
from cueline.testing.wait import PATIENCE_SECONDS


async def take(events: AsyncIterator[RecordedEvent], count: int) -> list[RecordedEvent]:
    """Return the next *count* of *events*."""
    return [await asyncio.wait_for(anext(events), PATIENCE_SECONDS) for _ in range(count)]


class ReadContract:
    """Rule 4: a reader sees every event once, in order, and no incomplete append."""

    @pytest.mark.parametrize(
        ("after", "until", "expected"),
        [
            (0, None, [1, 2, 3, 4, 5]),
            (2, None, [3, 4, 5]),
            (2, 4, [3, 4]),
            (0, 99, [1, 2, 3, 4, 5]),
            (0, 0, []),
            (4, 3, []),
            (5, None, []),
            (99, None, []),
        ],
    )
    async def test_a_stream_is_read_after_one_version_up_to_another(
        self, store: EventStore, after: int, until: int | None, expected: list[int]
    ) -> None:
        await begin(store, OTHER, events=2)
        await begin(store, events=5)

        assert expected == versions([e async for e in store.read(SESSION, after, until)])

    @pytest.mark.parametrize(
        ("until", "limit", "expected"),
        [
            (None, None, [5, 4, 3, 2, 1]),
            (3, None, [3, 2, 1]),
            (None, 2, [5, 4]),
            (3, 1, [3]),
            (99, 9, [5, 4, 3, 2, 1]),
            (0, None, []),
            (None, 0, []),
        ],
    )
    async def test_a_stream_is_read_from_its_end(
        self, store: EventStore, until: int | None, limit: int | None, expected: list[int]
    ) -> None:
        await begin(store, OTHER, events=2)
        await begin(store, events=5)

        assert expected == versions([e async for e in store.read_back(SESSION, until, limit)])

    @pytest.mark.parametrize(
        ("after", "until", "limit", "expected"),
        [(0, None, 2, [1, 2]), (2, None, 9, [3, 4, 5]), (1, 3, 1, [2]), (1, 3, 9, [2, 3])],
    )
    async def test_so_many_events_of_a_stream_are_read_and_no_more(
        self, store: EventStore, after: int, until: int | None, limit: int, expected: list[int]
    ) -> None:
        await begin(store, events=5)

        assert expected == versions([e async for e in store.read(SESSION, after, until, limit)])
        assert [] == [e async for e in store.read(SESSION, after, until, 0)]

    async def test_a_stream_that_is_not_there_has_no_events(self, store: EventStore) -> None:
        await store.acquire(OTHER, "host-a", 0)

        assert [] == await all_of(store, SESSION)
        assert [] == await all_of(store, OTHER)
        assert [] == [e async for e in store.read_back(SESSION)]

    async def test_a_long_stream_is_read_whole_and_in_order(self, store: EventStore) -> None:
        await begin(store, INBOX)
        await begin(store, events=1_100)

        events = await all_of(store, SESSION)

        assert list(range(1, 1_101)) == versions(events)
        assert 1_100 == check_chain(events).version
        assert events[::-1] == [event async for event in store.read_back(SESSION)]
        assert events[:-601:-1] == [event async for event in store.read_back(SESSION, limit=600)]
        assert list(range(1, 1_102)) == positions(await whole_log(store))

    async def test_large_events_are_read_whole_and_in_order(self, store: EventStore) -> None:
        large = [bytes([number]) * 150_000 for number in range(9)]
        await store.append([Write(SESSION, [fact(p) for p in large], NO_STREAM)], key="k")

        assert large == payloads(await all_of(store, SESSION))
        assert large == payloads(await whole_log(store))

    async def test_an_emptied_event_is_read_without_its_payload(self, store: EventStore) -> None:
        await begin(store, events=3)

        await empty(store, SESSION, 2)

        events = await all_of(store, SESSION)
        assert [b"0", None, b"2"] == payloads(events)
        assert [b"0", None, b"2"] == payloads(await whole_log(store))[:3]
        assert events[1].salt is None
        assert 3 == check_chain(events).version

    async def test_the_chain_goes_on_after_an_emptied_event(self, store: EventStore) -> None:
        first = await begin(store, events=2)
        await empty(store, SESSION, 2)

        await store.append([Write(SESSION, facts(1), 2)], key="k")

        assert 3 == check_chain(await all_of(store, SESSION)).version
        assert first == await begin(store, events=2)

    async def test_equal_payloads_have_unequal_hashes(self, store: EventStore) -> None:
        await store.append([Write(SESSION, [fact(b"yes"), fact(b"yes")], NO_STREAM)], key="k")

        one, two = await all_of(store, SESSION)
        assert one.payload_hash != two.payload_hash
        assert 16 == len(one.salt or b"") == len(two.salt or b"")

    async def test_an_empty_log_has_no_last_position(self, store: EventStore) -> None:
        assert 0 == await store.last_position()
        assert [] == await whole_log(store)

    @pytest.mark.parametrize(
        ("after", "categories", "limit", "expected"),
        [
            (0, None, None, [1, 2, 3, 4, 5, 6]),
            (4, None, None, [5, 6]),
            (0, None, 2, [1, 2]),
            (0, None, 0, []),
            (9, None, None, []),
            (0, ["session"], None, [3, 4]),
            (3, ["session"], None, [4]),
            (0, ["inbox", "budget"], 3, [1, 2, 5]),
            (2, ("budget",), 1, [5]),
            (0, {"breaker"}, None, []),
            (0, (), None, []),
        ],
    )
    async def test_the_log_is_read_in_order_by_category(
        self,
        store: EventStore,
        after: int,
        categories: Collection[str] | None,
        limit: int | None,
        expected: list[int],
    ) -> None:
        for stream in (INBOX, SESSION, "budget-default/7f3a"):
            await begin(store, stream, events=2)

        events = store.read_all(after, categories, limit)

        assert expected == positions([event async for event in events])

    async def test_a_category_is_found_behind_many_others(self, store: EventStore) -> None:
        await begin(store, INBOX, events=600)
        await begin(store, SESSION)
        await begin(store, OTHER, events=300)

        inboxes = [event async for event in store.read_all(0, ["inbox"])]
        sessions = [event async for event in store.read_all(590, ["session"], 2)]

        assert list(range(1, 601)) == positions(inboxes)
        assert [601, 602] == positions(sessions)

    async def test_a_limit_goes_over_pages(self, store: EventStore) -> None:
        await begin(store, events=700)

        events = [event async for event in store.read_all(10, None, 600)]

        assert list(range(11, 611)) == positions(events)

    async def test_a_reader_sees_whole_appends_only(self, store: EventStore) -> None:
        async def write() -> None:
            for number in range(10):
                writes = [Write(INBOX, facts(2), ANY), Write(OTHER, facts(1), ANY)]
                await store.append(writes, key=f"k{number}")

        writing = asyncio.ensure_future(write())
        while not writing.done():
            events = await whole_log(store)
            assert 0 == len(events) % 3
            assert list(range(1, len(events) + 1)) == positions(events)
            assert len(events) <= await store.last_position()
            await store.append([Write(SESSION, facts(3), ANY)], key=str(len(events)))
        await writing

    async def test_who_follows_sees_what_was_and_what_comes(self, store: EventStore) -> None:
        await begin(store, events=3)
        following = store.follow(1)

        assert [2, 3] == positions(await take(following, 2))
        coming = asyncio.ensure_future(take(following, 2))
        await begin(store, OTHER, events=1)
        await begin(store, INBOX, events=1)

        assert [4, 5] == positions(await coming)

    async def test_each_who_follows_sees_everything(self, store: EventStore) -> None:
        following = [asyncio.ensure_future(take(store.follow(0), 6)) for _ in range(3)]

        for number in range(6):
            await store.append([Write(INBOX, facts(1), ANY)], key=f"k{number}")

        for events in await asyncio.gather(*following):
            assert [1, 2, 3, 4, 5, 6] == positions(events)

    async def test_who_follows_a_category_sees_no_other(self, store: EventStore) -> None:
        following = asyncio.ensure_future(take(store.follow(0, {"inbox"}), 2))

        for stream in (SESSION, INBOX, OTHER, "inbox-default/81bc"):
            await begin(store, stream)

        assert [2, 4] == positions(await following)

    async def test_following_from_beyond_the_end_waits(self, store: EventStore) -> None:
        following = asyncio.ensure_future(take(store.follow(2), 1))

        await begin(store, events=2)
        await begin(store, OTHER)

        assert [3] == positions(await following)

    async def test_who_follows_is_told_that_the_store_was_closed(self, store: EventStore) -> None:
        await begin(store)
        following = store.follow(0)
        await take(following, 1)
        coming = asyncio.ensure_future(take(following, 1))
        await take_turns()

        await store.close()

        with pytest.raises(LogUnavailableError):
            await coming
