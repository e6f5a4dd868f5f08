"""Contract tests of the owners of streams."""

# ruff: noqa: SIM300 - a test's name is the fact; what is expected stands first

import asyncio

import pytest

from cueline.errors import FencedError, InvalidNameError
from cueline.events.store import ANY, NO_STREAM, EventStore, Head, Write
from cueline.testing.event_store_example import (
    INBOX,
    OTHER,
    SESSION,
    all_of,
    begin,
    facts,
    versions,
    whole_log,
)


class EpochContract:
    """Rule 3: an acquired stream takes only its owner's appends (I3)."""

    async def test_nothing_is_known_of_a_stream_that_is_not_there(self, store: EventStore) -> None:
        assert Head(NO_STREAM, 0, None) == await store.head(SESSION)

    async def test_the_epoch_counts_the_owners(self, store: EventStore) -> None:
        first = await store.acquire(SESSION, "host-a", 0)
        second = await store.acquire(SESSION, "host-b", first)

        assert (1, 2) == (first, second)
        assert Head(NO_STREAM, 2, "host-b") == await store.head(SESSION)

    async def test_the_heads_of_many_streams_are_those_of_each(self, store: EventStore) -> None:
        await begin(store, events=2)
        await store.acquire(OTHER, "host-b", 0)

        heads = await store.heads([SESSION, OTHER, INBOX])

        assert {each: await store.head(each) for each in (SESSION, OTHER, INBOX)} == heads
        assert Head() == heads[INBOX] != heads[OTHER] != heads[SESSION]

    async def test_acquiring_appends_nothing(self, store: EventStore) -> None:
        await begin(store)

        await store.acquire(SESSION, "host-a", 0)

        assert Head(1, 1, "host-a") == await store.head(SESSION)
        assert [1] == versions(await all_of(store, SESSION))

    @pytest.mark.parametrize("seen", [0, 2, -1])
    async def test_acquiring_by_another_epoch_is_refused(
        self, store: EventStore, seen: int
    ) -> None:
        await store.acquire(SESSION, "host-a", 0)

        with pytest.raises(FencedError) as caught:
            await store.acquire(SESSION, "host-b", seen)

        assert (SESSION, seen, 1) == caught.value.args
        assert "host-a" == (await store.head(SESSION)).owner

    async def test_of_four_who_acquire_at_once_one_wins(self, store: EventStore) -> None:
        racers = [store.acquire(SESSION, f"host-{name}", 0) for name in "abcd"]

        results = await asyncio.gather(*racers, return_exceptions=True)

        assert 3 == sum(isinstance(result, FencedError) for result in results)
        assert 1 == (await store.head(SESSION)).epoch

    async def test_what_is_not_a_stream_cannot_be_acquired(self, store: EventStore) -> None:
        for name, owner in (("session", "host-a"), (SESSION, "\ud800")):
            with pytest.raises(InvalidNameError):
                await store.acquire(name, owner, 0)

    async def test_the_owner_appends(self, store: EventStore) -> None:
        epoch = await store.acquire(SESSION, "host-a", 0)

        await store.append([Write(SESSION, facts(2), NO_STREAM, epoch)], key="k")
        await store.append([Write(SESSION, facts(1), 2, epoch)], key="l")

        assert [1, 1, 1] == [event.epoch for event in await all_of(store, SESSION)]
        assert Head(3, 1, "host-a") == await store.head(SESSION)

    @pytest.mark.parametrize("key", ["k", None])
    async def test_a_former_owner_is_fenced(self, store: EventStore, key: str | None) -> None:
        former = await store.acquire(SESSION, "host-a", 0)
        await store.acquire(SESSION, "host-b", former)

        with pytest.raises(FencedError) as caught:
            await store.append([Write(SESSION, facts(1), NO_STREAM, former)], key)

        assert (SESSION, 1, 2) == caught.value.args
        assert [] == await whole_log(store)

    async def test_a_takeover_between_two_appends_fences_the_second(
        self, store: EventStore
    ) -> None:
        former = await store.acquire(SESSION, "host-a", 0)
        together = [
            store.append([Write(SESSION, facts(1), NO_STREAM, former)], key="k"),
            store.acquire(SESSION, "host-b", former),
            store.append([Write(SESSION, facts(1), 1, former)], key="l"),
        ]

        first, second, third = await asyncio.gather(*together, return_exceptions=True)

        assert not isinstance(first, BaseException)
        assert 2 == second
        assert isinstance(third, FencedError)

    async def test_epochs_of_a_stream_never_interleave(self, store: EventStore) -> None:
        former = await store.acquire(SESSION, "host-a", 0)
        await store.append([Write(SESSION, facts(1), NO_STREAM, former)], key="k")
        owner = await store.acquire(SESSION, "host-b", former)
        await store.append([Write(SESSION, facts(1), 1, owner)], key="l")

        with pytest.raises(FencedError):
            await store.append([Write(SESSION, facts(1), 2, former)], key="m")

        assert [1, 2] == [event.epoch for event in await all_of(store, SESSION)]

    @pytest.mark.parametrize("epoch", [None, 0, 2, 99])
    async def test_only_the_owners_epoch_appends(
        self, store: EventStore, epoch: int | None
    ) -> None:
        await store.acquire(SESSION, "host-a", 0)

        with pytest.raises(FencedError):
            await store.append([Write(SESSION, facts(1), NO_STREAM, epoch)], key="k")

    async def test_an_owner_says_which_version_it_knows(self, store: EventStore) -> None:
        epoch = await store.acquire(SESSION, "host-a", 0)

        with pytest.raises(FencedError):
            await store.append([Write(SESSION, facts(1), ANY, epoch)], key="k")

    @pytest.mark.parametrize("epoch", [0, 1])
    async def test_an_epoch_is_refused_where_nobody_ever_was_the_owner(
        self, store: EventStore, epoch: int
    ) -> None:
        await begin(store, INBOX)

        with pytest.raises(FencedError) as caught:
            await store.append([Write(INBOX, facts(1), 1, epoch)], key="k")

        assert (INBOX, epoch, 0) == caught.value.args

    async def test_an_owner_writes_to_an_inbox_in_the_same_append(self, store: EventStore) -> None:
        epoch = await store.acquire(SESSION, "host-a", 0)

        await store.append(
            [Write(SESSION, facts(1), NO_STREAM, epoch), Write(INBOX, facts(1), ANY)], key="k"
        )

        assert [1, 0] == [event.epoch for event in await whole_log(store)]

    async def test_one_fenced_write_refuses_the_whole_append(self, store: EventStore) -> None:
        await store.acquire(SESSION, "host-a", 0)

        with pytest.raises(FencedError):
            await store.append(
                [Write(OTHER, facts(1), NO_STREAM), Write(SESSION, facts(1), NO_STREAM, 7)], key="k"
            )

        assert Head() == await store.head(OTHER)
        assert [] == await whole_log(store)
