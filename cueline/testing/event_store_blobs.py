"""Contract tests of blobs."""

# ruff: noqa: SIM300 - a test's name is the fact; what is expected stands first

import asyncio
import hashlib
from datetime import datetime, timedelta
from typing import Protocol

import pytest

from cueline.errors import BlobTooLargeError, MissingBlobError
from cueline.events.store import ANY, BLOB_LIMIT, EventStore, Write
from cueline.testing.event_store_example import INBOX, SetClock, begin, fact, facts, whole_log

DAY = timedelta(hours=24)
MINUTE = timedelta(minutes=1)


class CollectingStore(EventStore, Protocol):
    """A store that also deletes blobs without references."""

    async def collect_blobs(self, now: datetime) -> int:
        """Delete blobs without references that nobody has put for a day; return their number."""


class BlobContract:
    """Large values are stored once, before the event that names them, and while an event does."""

    @pytest.mark.parametrize("content", [b"", b"a\x00b", bytes(range(256)), b"x" * 3_000_000])
    async def test_a_blob_comes_back_as_it_went(self, store: EventStore, content: bytes) -> None:
        blob = await store.put_blob(content)

        assert hashlib.sha256(content).hexdigest() == blob
        assert content == await store.get_blob(blob)

    async def test_a_blob_may_be_put_again_and_at_once(self, store: EventStore) -> None:
        first, *others = await asyncio.gather(*(store.put_blob(b"same") for _ in range(3)))

        assert [first, first] == others
        assert first == await store.put_blob(b"same")

    async def test_a_blob_is_no_event(self, store: EventStore) -> None:
        await store.put_blob(b"content")

        assert [] == await whole_log(store)

    async def test_a_blob_that_is_not_there_is_missed(self, store: EventStore) -> None:
        for blob in (hashlib.sha256(b"never put").hexdigest(), "no hash", ""):
            with pytest.raises(MissingBlobError):
                await store.get_blob(blob)

    async def test_a_blob_over_the_limit_is_refused(self, store: EventStore) -> None:
        with pytest.raises(BlobTooLargeError) as caught:
            await store.put_blob(bytes(BLOB_LIMIT + 1))

        assert BLOB_LIMIT + 1 == caught.value.size

    async def test_an_append_names_blobs_that_are_there(self, store: EventStore) -> None:
        blob = await store.put_blob(b"content")
        missing = hashlib.sha256(b"never put").hexdigest()
        writes = [Write(INBOX, [fact(blobs=(blob,)), fact(blobs=(blob, missing))], ANY)]

        with pytest.raises(MissingBlobError) as caught:
            await store.append(writes, key="k")

        assert (INBOX, missing) == caught.value.args
        assert [] == await whole_log(store)

    async def test_the_append_passes_once_the_blob_is_put(self, store: EventStore) -> None:
        blob = hashlib.sha256(b"content").hexdigest()
        writes = [Write(INBOX, [fact(blobs=(blob, blob))], ANY)]
        with pytest.raises(MissingBlobError):
            await store.append(writes, key="k")

        await store.put_blob(b"content")
        await store.append(writes, key="k")

        assert 1 == await store.last_position()

    async def test_a_missing_blob_costs_the_neighbours_nothing(self, store: EventStore) -> None:
        lame = store.append([Write(INBOX, [*facts(1), fact(blobs=("x",))], ANY)], key="k")

        refused, appended = await asyncio.gather(lame, begin(store), return_exceptions=True)

        assert isinstance(refused, MissingBlobError)
        assert not isinstance(appended, BaseException)
        assert 1 == await store.last_position()

    async def test_what_nothing_names_goes_a_day_after_it_was_put(
        self, store: CollectingStore, clock: SetClock
    ) -> None:
        blob = await store.put_blob(b"content")

        assert 0 == await store.collect_blobs(clock.now() + DAY - MINUTE)
        assert b"content" == await store.get_blob(blob)
        assert 1 == await store.collect_blobs(clock.now() + DAY + MINUTE)
        with pytest.raises(MissingBlobError):
            await store.get_blob(blob)

    async def test_what_an_event_names_stays(self, store: CollectingStore, clock: SetClock) -> None:
        blob = await store.put_blob(b"content")
        await store.append([Write(INBOX, [fact(blobs=(blob,))], ANY)], key="k")

        assert 0 == await store.collect_blobs(clock.now() + 9 * DAY)
        assert b"content" == await store.get_blob(blob)

    async def test_putting_again_renews_the_time(
        self, store: CollectingStore, clock: SetClock
    ) -> None:
        blob = await store.put_blob(b"content")
        clock.move(DAY)
        await store.put_blob(b"content")

        assert 0 == await store.collect_blobs(clock.now() + DAY - MINUTE)
        assert b"content" == await store.get_blob(blob)
