"""Contract tests of appends."""

# ruff: noqa: SIM300 - a test's name is the fact; what is expected stands first

import asyncio
import contextlib
from datetime import timedelta
from typing import Any

import pytest

from cueline.errors import (
    BlobTooLargeError,
    EmptyAppendError,
    InvalidNameError,
    LogUnavailableError,
    WrongExpectedVersionError,
)
from cueline.events.store import ANY, BLOB_LIMIT, NO_STREAM, EventStore, Head, Write, to_us
from cueline.testing.event_store_example import (
    INBOX,
    OTHER,
    SESSION,
    SetClock,
    all_of,
    begin,
    check_chain,
    fact,
    facts,
    payloads,
    positions,
    versions,
    whole_log,
)

HOSTILE = {
    "nothing": b"",
    "NUL": b'{"text":"a\x00b"}',
    "escaped NUL": b'{"text":"\\u0000"}',
    "lone surrogate": b'{"text":"\\ud800"}',
    "not UTF-8": b"\xff\xfe\xfd",
    "every byte": bytes(range(256)),
    "not a number": b'{"cost":NaN}',
    "a huge integer": b"9" * 5_000,
    "deep nesting": b"[" * 100_000,
    "a megabyte": b"x" * 1_048_577,
}
ASKED = (
    "type",
    "schema",
    "payload",
    "occurred_us",
    "actor",
    "attrs",
    "correlation_id",
    "causation_id",
    "step",
)
TEXTS = {
    "unicode": "größer 🦜 \u2028 \u202e",
    "NUL": "a\x00b",
    "quotes": "';--\"",
    "nothing": "",
    "lines": "a\r\nb",
}


class AppendContract:
    """Rules 1, 4 and 5: atomic, dense, in commit order; a failed append does not affect others."""

    async def test_versions_count_from_1(self, store: EventStore) -> None:
        appended = await begin(store, events=3)

        assert (3,) == appended.versions
        assert [1, 2, 3] == versions(await all_of(store, SESSION))

    async def test_positions_are_dense_over_all_streams(self, store: EventStore) -> None:
        for number in range(4):
            await store.append([Write(f"inbox-default/{number}", facts(2), ANY)], key="k")

        assert list(range(1, 9)) == positions(await whole_log(store))

    async def test_an_append_says_where_it_ended_up(
        self, store: EventStore, clock: SetClock
    ) -> None:
        await begin(store, events=2)

        writes = [Write(SESSION, facts(2), 2), Write(OTHER, facts(1), NO_STREAM)]
        appended = await store.append(writes, key="both")

        assert (4, 1) == appended.versions
        assert 5 == appended.position == await store.last_position()
        assert to_us(clock.now()) == appended.recorded_us

    async def test_an_append_without_events_is_refused(self, store: EventStore) -> None:
        half_empty = [Write(SESSION, facts(1), NO_STREAM), Write(OTHER, [], NO_STREAM)]

        for writes in ([], half_empty):
            with pytest.raises(EmptyAppendError):
                await store.append(writes, key="k")

        assert [] == await whole_log(store)

    @pytest.mark.parametrize("expected", [0, 1, 3, 99, -2])
    async def test_a_wrong_expected_version_appends_nothing(
        self, store: EventStore, expected: int
    ) -> None:
        await begin(store, events=2)

        with pytest.raises(WrongExpectedVersionError) as caught:
            await store.append([Write(SESSION, facts(1), expected)], key="k")

        assert (SESSION, expected, 2) == caught.value.args
        assert [1, 2] == versions(await all_of(store, SESSION))

    async def test_any_version_will_do_where_nobody_owns_the_stream(
        self, store: EventStore
    ) -> None:
        for number in range(3):
            appended = await store.append([Write(INBOX, facts(1), ANY)], key=f"k{number}")

        assert (3,) == appended.versions

    async def test_an_append_is_of_all_its_writes_or_none(self, store: EventStore) -> None:
        await begin(store, OTHER)

        with pytest.raises(WrongExpectedVersionError):
            await store.append(
                [Write(SESSION, facts(2), NO_STREAM), Write(OTHER, facts(1), 7)], key="k"
            )

        assert Head() == await store.head(SESSION)
        assert 1 == await store.last_position()

    async def test_the_events_of_an_append_stand_side_by_side(self, store: EventStore) -> None:
        writes = [Write(f"inbox-default/{n}", facts(2), ANY) for n in range(3)]

        await asyncio.gather(*(store.append(writes, key=f"k{n}") for n in range(5)))

        events = await whole_log(store)
        assert [0, 1, 2, 3, 4, 5] * 5 == [event.seq for event in events]
        assert list(range(1, 31)) == positions(events)

    async def test_a_stream_may_come_twice_in_an_append(self, store: EventStore) -> None:
        writes = [Write(SESSION, facts(2), NO_STREAM), Write(SESSION, facts(1), 2)]

        appended = await store.append(writes, key="k")

        assert (2, 3) == appended.versions
        assert 3 == check_chain(await all_of(store, SESSION)).version

    async def test_of_four_racing_writers_one_wins(self, store: EventStore) -> None:
        racers = [store.append([Write(SESSION, facts(1), NO_STREAM)], key=f"k{n}") for n in "abcd"]

        results = await asyncio.gather(*racers, return_exceptions=True)

        lost = [result for result in results if isinstance(result, WrongExpectedVersionError)]
        assert 3 == len(lost)
        assert [1] == versions(await all_of(store, SESSION))

    async def test_a_losing_append_costs_its_neighbours_nothing(self, store: EventStore) -> None:
        expected = [NO_STREAM, 5, NO_STREAM, ANY, 9, NO_STREAM]
        together = [
            store.append([Write(f"session-default/{n}", facts(2), version)], key="k")
            for n, version in enumerate(expected)
        ]

        results = await asyncio.gather(*together, return_exceptions=True)

        assert [1, 4] == [n for n, result in enumerate(results) if isinstance(result, Exception)]
        assert list(range(1, 9)) == positions(await whole_log(store))

    async def test_many_at_once_are_dense_and_each_chain_is_whole(self, store: EventStore) -> None:
        streams = [f"session-default/{n}" for n in range(8)]

        async def fill(stream: str) -> None:
            for version in range(5):
                await store.append([Write(stream, facts(1), version)], key=f"k{version}")

        await asyncio.gather(*map(fill, streams))

        assert list(range(1, 41)) == positions(await whole_log(store))
        for stream in streams:
            assert 5 == check_chain(await all_of(store, stream)).version

    async def test_everything_comes_back_as_it_went(
        self, store: EventStore, clock: SetClock
    ) -> None:
        first = fact(correlation_id="c", causation_id="d", attrs='{"tool":"x"}', step=3, schema=7)
        second = fact(b"other", actor="user:ada", type="MessageReceived", occurred_us=-5)

        await store.append([Write(SESSION, [first, second], NO_STREAM)], key="k")

        one, two = await all_of(store, SESSION)
        assert [getattr(first, name) for name in ASKED] == [getattr(one, name) for name in ASKED]
        assert [getattr(second, name) for name in ASKED] == [getattr(two, name) for name in ASKED]
        assert [(SESSION, 1, 0, 0), (SESSION, 2, 0, 1)] == [
            (event.stream, event.version, event.epoch, event.seq) for event in (one, two)
        ]
        assert clock.now() == one.recorded_at

    @pytest.mark.parametrize("payload", HOSTILE.values(), ids=HOSTILE)
    async def test_bytes_come_back_as_they_went(self, store: EventStore, payload: bytes) -> None:
        await store.append([Write(SESSION, [fact(payload)], NO_STREAM)], key="k")

        events = await all_of(store, SESSION)
        assert [payload] == payloads(events)
        check_chain(events)

    @pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS)
    async def test_texts_come_back_as_they_went(self, store: EventStore, text: str) -> None:
        draft = fact(actor=text, attrs=text, correlation_id=text, causation_id=text)

        appended = await store.append([Write(SESSION, [draft], NO_STREAM)], key=text)
        again = await store.append([Write(SESSION, [draft], NO_STREAM)], key=text)

        [event] = await all_of(store, SESSION)
        assert [text] * 4 == [event.actor, event.attrs, event.correlation_id, event.causation_id]
        assert appended == again
        check_chain([event])

    @pytest.mark.parametrize("field", ["type", "actor", "attrs", "correlation_id", "causation_id"])
    async def test_a_text_that_is_not_unicode_is_refused(
        self, store: EventStore, field: str
    ) -> None:
        other: dict[str, Any] = {field: "\ud800"}
        broken = [Write(SESSION, [fact(**other)], NO_STREAM)]
        together = [store.append(broken, key="k"), begin(store, OTHER)]

        refused, appended = await asyncio.gather(*together, return_exceptions=True)

        assert isinstance(refused, InvalidNameError)
        assert not isinstance(appended, BaseException)

    async def test_what_is_not_a_stream_is_refused(self, store: EventStore) -> None:
        for name in ("session", "session-default/", "Session-default/a", "session-default/../a"):
            with pytest.raises(InvalidNameError):
                await store.append([Write(name, facts(1), ANY)], key="k")

        assert [] == await whole_log(store)

    async def test_a_payload_over_the_limit_is_refused(self, store: EventStore) -> None:
        with pytest.raises(BlobTooLargeError):
            await store.append([Write(SESSION, [fact(bytes(BLOB_LIMIT + 1))], NO_STREAM)], key="k")

    async def test_the_recorded_time_never_goes_back(
        self, store: EventStore, clock: SetClock
    ) -> None:
        first = await begin(store)
        clock.move(timedelta(hours=-1))

        second = await begin(store, OTHER)
        clock.move(timedelta(hours=2))
        third = await begin(store, INBOX)

        assert first.recorded_us == second.recorded_us < third.recorded_us
        assert to_us(clock.now()) == third.recorded_us

    async def test_who_stops_waiting_takes_nobody_along(self, store: EventStore) -> None:
        impatient, *patient = [
            asyncio.ensure_future(store.append([Write(INBOX, facts(1), ANY)], key=f"k{n}"))
            for n in range(4)
        ]
        started = asyncio.get_running_loop().create_future()
        asyncio.get_running_loop().call_soon(started.set_result, None)
        await started

        impatient.cancel()

        assert 3 == len(await asyncio.gather(*patient))
        with contextlib.suppress(asyncio.CancelledError):
            await impatient
        last = await store.last_position()
        assert last in {3, 4}
        assert list(range(1, last + 1)) == positions(await whole_log(store))

    async def test_a_closed_store_takes_nothing(self, store: EventStore) -> None:
        await store.close()

        with pytest.raises(LogUnavailableError):
            await begin(store)
