"""Contract tests of forks."""

# ruff: noqa: SIM300 - a test's name is the fact; what is expected stands first

import asyncio

import pytest

from cueline.errors import FencedError, InvalidNameError, WrongExpectedVersionError
from cueline.events.store import ANY, NO_STREAM, Appended, EventStore, Head, Write
from cueline.testing.event_store_example import (
    FORK,
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
    versions,
)

YOUNGER = "session-default/d0d0"


async def fork(
    store: EventStore, stream: str, parent: str, version: int, *, own: bytes = b"own"
) -> Appended:
    """Append the first event of a fork."""
    write = Write(stream, [fact(own)], version, after=(parent, version))
    return await store.append([write], key="fork")


class ForkContract:
    """A stream may continue another one; the shared prefix is never copied."""

    async def test_a_fork_counts_on_from_its_parent(self, store: EventStore) -> None:
        await begin(store, events=3)

        appended = await fork(store, FORK, SESSION, 2)

        assert (3,) == appended.versions
        assert Head(3, 0, None) == await store.head(FORK)
        assert 4 == await store.last_position()

    async def test_a_forks_events_begin_with_its_parents(self, store: EventStore) -> None:
        await begin(store, events=3)
        await fork(store, FORK, SESSION, 2)

        events = await all_of(store, FORK)

        assert [b"0", b"1", b"own"] == payloads(events)
        assert [SESSION, SESSION, FORK] == [event.stream for event in events]
        assert events[::-1] == [event async for event in store.read_back(FORK)]
        assert events[1:] == [event async for event in store.read(FORK, 1, limit=2)]
        assert events[:0:-1] == [event async for event in store.read_back(FORK, limit=2)]

    async def test_a_forks_chain_goes_on_from_its_parents(self, store: EventStore) -> None:
        await begin(store, events=3)
        await fork(store, FORK, SESSION, 2)
        await fork(store, OTHER, SESSION, 3)

        assert 3 == check_chain(await all_of(store, FORK)).version
        assert 4 == check_chain(await all_of(store, OTHER)).version

    async def test_a_fork_goes_on_by_itself(self, store: EventStore) -> None:
        await begin(store, events=3)
        await fork(store, FORK, SESSION, 2)

        await store.append([Write(SESSION, facts(1), 3)], key="k")
        await store.append([Write(FORK, facts(1), 3)], key="k")

        assert [b"0", b"1", b"own", b"0"] == payloads(await all_of(store, FORK))
        assert [b"0", b"1", b"2", b"0"] == payloads(await all_of(store, SESSION))
        assert 4 == check_chain(await all_of(store, FORK)).version

    @pytest.mark.parametrize("version", [1, 2, 3, 4, 5])
    async def test_a_fork_of_a_fork_reads_all_prefixes(
        self, store: EventStore, version: int
    ) -> None:
        await begin(store, events=3)
        await fork(store, FORK, SESSION, 2)
        await store.append([Write(FORK, facts(2), 3)], key="k")

        await fork(store, YOUNGER, FORK, version, own=b"younger")

        events = await all_of(store, YOUNGER)
        assert [*[b"0", b"1", b"own", b"0", b"1"][:version], b"younger"] == payloads(events)
        assert version + 1 == check_chain(events).version

    @pytest.mark.parametrize(
        ("after", "until", "expected"),
        [(1, None, [2, 3, 4]), (2, None, [3, 4]), (3, None, [4]), (0, 1, [1]), (1, 3, [2, 3])],
    )
    async def test_a_part_of_a_fork_is_read_over_the_seam(
        self, store: EventStore, after: int, until: int | None, expected: list[int]
    ) -> None:
        await begin(store, events=5)
        await fork(store, FORK, SESSION, 2)
        await store.append([Write(FORK, facts(1), 3)], key="k")

        assert expected == versions([e async for e in store.read(FORK, after, until)])

    async def test_a_fork_is_in_the_log_without_its_prefix(self, store: EventStore) -> None:
        await begin(store, events=2)
        await fork(store, FORK, SESSION, 2)

        assert [1, 2, 3] == versions([event async for event in store.read_all()])

    @pytest.mark.parametrize("version", [-1, 0, 3, 99])
    async def test_a_fork_begins_at_a_version_that_is_there(
        self, store: EventStore, version: int
    ) -> None:
        await begin(store, events=2)

        with pytest.raises(WrongExpectedVersionError) as caught:
            await fork(store, FORK, SESSION, version)

        assert (SESSION, version, 2) == caught.value.args
        assert Head() == await store.head(FORK)

    async def test_nothing_forks_from_a_stream_that_is_not_there(self, store: EventStore) -> None:
        for parent, error in (
            (OTHER, WrongExpectedVersionError),
            (FORK, WrongExpectedVersionError),
            ("nobody", InvalidNameError),
        ):
            with pytest.raises(error):
                await fork(store, FORK, parent, 1)

    @pytest.mark.parametrize("expected", [NO_STREAM, 1, 3])
    async def test_a_forks_writer_expects_the_version_it_goes_on_from(
        self, store: EventStore, expected: int
    ) -> None:
        await begin(store, events=3)

        with pytest.raises(WrongExpectedVersionError):
            await store.append([Write(FORK, facts(1), expected, after=(SESSION, 2))], key="k")

    async def test_a_stream_that_has_begun_is_not_made_a_fork(self, store: EventStore) -> None:
        await begin(store, events=2)
        await begin(store, OTHER, events=2)

        with pytest.raises(WrongExpectedVersionError) as caught:
            await fork(store, OTHER, SESSION, 2)

        assert (OTHER, NO_STREAM, 2) == caught.value.args

    async def test_asking_again_for_a_fork_returns_the_first_result(
        self, store: EventStore
    ) -> None:
        await begin(store, events=2)
        first = await fork(store, FORK, SESSION, 2)

        assert first == await fork(store, FORK, SESSION, 2)
        assert 3 == (await store.head(FORK)).version

    async def test_an_owner_of_a_fork_begins_it(self, store: EventStore) -> None:
        await begin(store, events=2)
        epoch = await store.acquire(FORK, "host-a", 0)

        with pytest.raises(FencedError):
            await fork(store, FORK, SESSION, 2)
        write = Write(FORK, facts(1), 2, epoch, after=(SESSION, 2))
        await store.append([write, Write(INBOX, facts(1), ANY)], key="k")

        assert Head(3, 1, "host-a") == await store.head(FORK)
        assert [0, 0, 1] == [event.epoch for event in await all_of(store, FORK)]

    @pytest.mark.parametrize("version", [1, 2])
    async def test_a_fork_may_begin_beside_its_parents_events(
        self, store: EventStore, version: int
    ) -> None:
        await asyncio.gather(begin(store, events=2), fork(store, FORK, SESSION, version))

        assert version + 1 == check_chain(await all_of(store, FORK)).version

    async def test_an_emptied_prefix_does_not_break_a_fork(self, store: EventStore) -> None:
        await begin(store, events=2)
        await fork(store, FORK, SESSION, 2)

        await empty(store, SESSION, 1)

        assert 3 == check_chain(await all_of(store, FORK)).version
