"""Contract tests of emptied payloads."""

# ruff: noqa: SIM300 - a test's name is the fact; what is expected stands first

import pytest

from cueline.errors import FencedError, MissingBlobError
from cueline.events.store import ANY, EventStore, Write
from cueline.testing.event_store_example import (
    INBOX,
    SESSION,
    all_of,
    check_chain,
    fact,
    facts,
    payloads,
    whole_log,
)


async def say(store: EventStore, *blobs: str, key: str = "k") -> Write:
    """Append an event that names *blobs* to the inbox, and return the write."""
    write = Write(INBOX, [fact(b"said", blobs=blobs)], ANY)
    await store.append([write], key)
    return write


def emptying_write(version: int, *, epoch: int) -> Write:
    """Return a write to the session that repeats the first message and empties it."""
    return Write(SESSION, facts(1), version, epoch, empties=[(INBOX, 1)])


class EmptyingContract:
    """An append that has the content in another form empties a payload; the event stays."""

    async def test_an_append_empties_what_it_says_otherwise(self, store: EventStore) -> None:
        await say(store)
        await say(store, key="second")
        epoch = await store.acquire(SESSION, "host-a", 0)

        await store.append([emptying_write(0, epoch=epoch)], None)

        told = await all_of(store, INBOX)
        assert [None, b"said"] == payloads(told)
        assert check_chain(told).hash == told[-1].hash
        assert [None, b"said", b"0"] == payloads(await whole_log(store))

    async def test_an_append_that_is_asked_again_empties_once(self, store: EventStore) -> None:
        asked = await say(store)
        epoch = await store.acquire(SESSION, "host-a", 0)

        first = await store.append([emptying_write(0, epoch=epoch)], None)

        assert first == await store.append([emptying_write(0, epoch=epoch)], None)
        # The sender, who may not have got the first answer, gets the same answer again.
        assert (1,) == (await store.append([asked], "k")).versions

    async def test_an_append_that_is_refused_empties_nothing(self, store: EventStore) -> None:
        await say(store)
        epoch = await store.acquire(SESSION, "host-a", 0)
        await store.acquire(SESSION, "host-b", epoch)

        with pytest.raises(FencedError):
            await store.append([emptying_write(0, epoch=epoch)], None)

        assert [b"said"] == payloads(await all_of(store, INBOX))

    async def test_a_blob_goes_with_the_last_event_that_names_it(self, store: EventStore) -> None:
        alone, shared = await store.put_blob(b"alone"), await store.put_blob(b"shared")
        await say(store, alone, shared)
        await say(store, shared, key="second")
        epoch = await store.acquire(SESSION, "host-a", 0)

        await store.append([emptying_write(0, epoch=epoch)], None)

        assert b"shared" == await store.get_blob(shared)
        with pytest.raises(MissingBlobError):
            await store.get_blob(alone)
