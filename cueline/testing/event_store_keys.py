"""Contract tests of the keys of appends."""

# ruff: noqa: SIM300 - a test's name is the fact; what is expected stands first

import asyncio
from collections.abc import Callable

import pytest
from msgspec.structs import replace

from cueline.errors import (
    FencedError,
    InvalidNameError,
    KeyReusedError,
    MissingBlobError,
    WrongExpectedVersionError,
)
from cueline.events.store import ANY, NO_STREAM, Draft, EventStore, Write
from cueline.testing.event_store_example import (
    INBOX,
    OTHER,
    SESSION,
    all_of,
    begin,
    fact,
    facts,
    payloads,
    whole_log,
)

OTHERWISE: dict[str, Callable[[Draft], Draft]] = {
    "payload": lambda draft: replace(draft, payload=b"another"),
    "type": lambda draft: replace(draft, type="ToolReturned"),
    "schema": lambda draft: replace(draft, schema=2),
}


class KeyContract:
    """Rule 2: the same key with the same content is the same append."""

    async def test_asking_again_returns_the_first_result(self, store: EventStore) -> None:
        writes = [Write(SESSION, facts(2), NO_STREAM), Write(OTHER, facts(1), NO_STREAM)]
        first = await store.append(writes, key="k")
        await store.append([Write(SESSION, facts(3), 2), Write(OTHER, facts(1), 1)], key="later")

        assert first == await store.append(writes, key="k")
        assert 7 == await store.last_position()

    async def test_asking_again_is_answered_after_a_takeover(self, store: EventStore) -> None:
        former = await store.acquire(SESSION, "host-a", 0)
        writes = [Write(SESSION, facts(1), NO_STREAM, former)]
        first = await store.append(writes, key="k")
        await store.acquire(SESSION, "host-b", former)

        assert first == await store.append(writes, key="k")

    async def test_asking_again_needs_no_blob(self, store: EventStore) -> None:
        first = await begin(store)

        again = [Write(SESSION, [fact(b"0", blobs=("not there",))], NO_STREAM)]

        assert first == await store.append(again, key="begin")

    async def test_who_asks_again_may_know_more_by_now(self, store: EventStore) -> None:
        first = await begin(store)
        epoch = await store.acquire(SESSION, "host-a", 0)

        again = [Write(SESSION, [replace(facts(1)[0], occurred_us=9, actor="system")], 1, epoch)]

        assert first == await store.append(again, key="begin")

    @pytest.mark.parametrize("other", OTHERWISE.values(), ids=OTHERWISE)
    @pytest.mark.parametrize("place", [0, 1])
    async def test_a_key_stands_for_one_content(
        self, store: EventStore, other: Callable[[Draft], Draft], place: int
    ) -> None:
        drafts = facts(2)
        await store.append([Write(INBOX, drafts, ANY)], key="k")
        drafts[place] = other(drafts[place])

        with pytest.raises(KeyReusedError) as caught:
            await store.append([Write(INBOX, drafts, ANY)], key="k")

        assert (INBOX, "k") == caught.value.args
        assert 2 == await store.last_position()

    @pytest.mark.parametrize("expected", [ANY, NO_STREAM, 3])
    @pytest.mark.parametrize("count", [1, 2, 4])
    async def test_a_part_of_the_content_is_another_content(
        self, store: EventStore, count: int, expected: int
    ) -> None:
        await store.append([Write(INBOX, facts(3), ANY)], key="k")

        with pytest.raises(KeyReusedError):
            await store.append([Write(INBOX, facts(count), expected)], key="k")

        assert [b"0", b"1", b"2"] == payloads(await all_of(store, INBOX))

    async def test_the_content_is_that_of_all_writes(self, store: EventStore) -> None:
        first, second = Write(INBOX, facts(1), ANY), Write(SESSION, facts(2), ANY)
        await store.append([first, second], key="k")
        others = [
            [first],
            [first, Write(OTHER, facts(2), ANY)],
            [first, Write(SESSION, facts(1), ANY), Write(OTHER, facts(2)[1:], ANY)],
            [first, Write(SESSION, facts(3), ANY)],
        ]

        for writes in others:
            with pytest.raises(KeyReusedError):
                await store.append(writes, key="k")

        assert 3 == await store.last_position()

    @pytest.mark.parametrize("expected", [ANY, NO_STREAM])
    async def test_asking_twice_at_once_appends_once(
        self, store: EventStore, expected: int
    ) -> None:
        writes = [Write(INBOX, facts(2), expected)]

        first, second = await asyncio.gather(*(store.append(writes, key="k") for _ in "ab"))

        assert first == second
        assert [b"0", b"1"] == payloads(await whole_log(store))

    @pytest.mark.parametrize("expected", [ANY, NO_STREAM])
    async def test_of_two_contents_at_once_the_first_has_the_key(
        self, store: EventStore, expected: int
    ) -> None:
        together = [
            store.append([Write(INBOX, facts(count), expected)], key="k") for count in (2, 1)
        ]

        first, second = await asyncio.gather(*together, return_exceptions=True)

        assert isinstance(second, KeyReusedError)
        assert not isinstance(first, BaseException)
        assert [b"0", b"1"] == payloads(await whole_log(store))

    async def test_a_key_is_the_first_streams_own(self, store: EventStore) -> None:
        both = [Write(INBOX, facts(1), ANY), Write(SESSION, facts(1), ANY)]
        await store.append(both, key="k")

        await store.append([Write(SESSION, facts(2), 1)], key="k")
        await store.append([Write(OTHER, facts(1), ANY)], key="k")

        assert 5 == await store.last_position()

    async def test_a_refused_append_leaves_its_key_free(self, store: EventStore) -> None:
        await begin(store)
        with pytest.raises(WrongExpectedVersionError):
            await store.append([Write(SESSION, facts(1), 5)], key="k")

        appended = await store.append([Write(SESSION, facts(3), 1)], key="k")

        assert (4,) == appended.versions

    async def test_the_key_comes_before_the_epoch(self, store: EventStore) -> None:
        await begin(store)
        await store.acquire(SESSION, "host-a", 0)

        with pytest.raises(KeyReusedError):
            await store.append([Write(SESSION, facts(2), NO_STREAM)], key="begin")

    async def test_the_epoch_comes_before_the_version(self, store: EventStore) -> None:
        await begin(store)
        await store.acquire(SESSION, "host-a", 0)
        late = Write(SESSION, facts(1), 7, 99)

        for writes in ([late], [Write(INBOX, facts(1), 7), late]):
            with pytest.raises(FencedError):
                await store.append(writes, key="k")

    async def test_the_version_comes_before_the_blobs(self, store: EventStore) -> None:
        await begin(store)
        draft = fact(blobs=("not there",))

        with pytest.raises(WrongExpectedVersionError):
            await store.append([Write(SESSION, [draft], 7)], key="k")
        with pytest.raises(MissingBlobError):
            await store.append([Write(SESSION, [draft], 1)], key="k")

    async def test_an_owner_asks_again_without_a_key(self, store: EventStore) -> None:
        await begin(store, INBOX)
        former = await store.acquire(SESSION, "host-a", 0)
        writes = [Write(SESSION, facts(2), NO_STREAM, former), Write(OTHER, facts(1), ANY)]
        first = await store.append(writes, key=None)
        await store.append([Write(SESSION, facts(1), 2, former)], key=None)
        owner = await store.acquire(SESSION, "host-b", former)
        await store.append([Write(SESSION, facts(1), 3, owner)], key=None)

        assert first == await store.append(writes, key=None)
        assert 6 == await store.last_position()

    async def test_an_owner_that_asks_twice_at_once_appends_once(self, store: EventStore) -> None:
        epoch = await store.acquire(SESSION, "host-a", 0)
        writes = [Write(SESSION, facts(2), NO_STREAM, epoch)]

        first, second = await asyncio.gather(*(store.append(writes, key=None) for _ in "ab"))

        assert first == second
        assert [b"0", b"1"] == payloads(await whole_log(store))

    @pytest.mark.parametrize("count", [1, 3])
    async def test_an_owners_place_stands_for_one_content(
        self, store: EventStore, count: int
    ) -> None:
        epoch = await store.acquire(SESSION, "host-a", 0)
        await store.append([Write(SESSION, facts(2), NO_STREAM, epoch)], key=None)
        await store.append([Write(SESSION, facts(1), 2, epoch)], key=None)

        with pytest.raises(KeyReusedError) as caught:
            await store.append([Write(SESSION, facts(count), NO_STREAM, epoch)], key=None)

        assert (SESSION, "1.0") == caught.value.args

    async def test_an_owners_place_is_where_its_append_began(self, store: EventStore) -> None:
        epoch = await store.acquire(SESSION, "host-a", 0)
        await store.append([Write(SESSION, facts(2), NO_STREAM, epoch)], key=None)

        with pytest.raises(WrongExpectedVersionError):
            await store.append([Write(SESSION, facts(2)[1:], 1, epoch)], key=None)

    async def test_a_former_owner_is_not_given_its_successors_append(
        self, store: EventStore
    ) -> None:
        former = await store.acquire(SESSION, "host-a", 0)
        owner = await store.acquire(SESSION, "host-b", former)
        await store.append([Write(SESSION, facts(1), NO_STREAM, owner)], key=None)

        with pytest.raises(FencedError):
            await store.append([Write(SESSION, facts(1), NO_STREAM, former)], key=None)

    @pytest.mark.parametrize("epoch", [None, 0])
    async def test_only_an_owner_appends_without_a_key(
        self, store: EventStore, epoch: int | None
    ) -> None:
        await begin(store)

        with pytest.raises(InvalidNameError):
            await store.append([Write(SESSION, facts(1), NO_STREAM, epoch)], key=None)
