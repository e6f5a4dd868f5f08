import asyncio
from datetime import timedelta
from types import SimpleNamespace

import pytest

from cueline.clock import SystemClock
from cueline.errors import CorruptEventError, LogUnavailableError
from cueline.events.chain import Chain
from cueline.events.store import NO_STREAM, Write
from cueline.sqlite_library import sqlite_library
from cueline.stores.sqlite import SqliteStore
from cueline.stores.sqlite_file import LogFile
from cueline.stores.sqlite_reader import SqliteReader
from cueline.testing.event_store_example import (
    INBOX,
    OTHER,
    SESSION,
    SetClock,
    begin,
    fact,
    versions,
)
from cueline.testing.wait import PATIENCE_SECONDS, await_until
from tests.stores.faulty import IO_ERROR, failure

EVENTS = 40


@pytest.fixture
async def path(tmp_path):
    """A log with one event of another stream, and then 40 of a session."""
    store = SqliteStore.open(tmp_path / "log.db", SetClock())
    await begin(store, INBOX)
    drafts = [fact(b"marker-%02d" % number + b"." * 1_000) for number in range(1, EVENTS + 1)]
    await store.append([Write(SESSION, drafts, NO_STREAM)], key="k")
    await store.close()
    return store.path


def tamper(path, statement):
    db = sqlite_library().connect(path, isolation_level=None)
    for trigger in ("events_never_change", "events_never_go", "streams_never_go"):
        db.execute(f"DROP TRIGGER {trigger}")
    db.execute("PRAGMA ignore_check_constraints = ON")
    db.execute(statement)
    db.close()


def deface(path, version):
    """Overwrite the head of the page that holds an event."""
    content = bytearray(path.read_bytes())
    page = content.index(b"marker-%02d" % version) // 4096 * 4096
    content[page : page + 8] = b"\xee" * 8
    path.write_bytes(content)


async def read_until_it_breaks(events):
    """Return the versions that load, and what was told of the one that does not."""
    seen, chain = [], Chain()
    try:
        async for event in events:
            if event.stream == SESSION:
                chain.check(event)
                seen.append(event.version)
    except CorruptEventError as error:
        return seen, error
    raise AssertionError(seen)


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE events SET payload = x'00' WHERE version = 30",
        "UPDATE events SET hash = zeroblob(32) WHERE version = 30",
        "UPDATE events SET actor = 'user:eve' WHERE version = 30",
        "UPDATE events SET actor = CAST(x'ff' AS TEXT) WHERE version = 30",
        "DELETE FROM events WHERE version = 30",
    ],
)
@pytest.mark.parametrize("how", ["read", "read_all"])
async def test_a_row_that_was_tampered_with_is_named_and_what_is_before_loads(path, statement, how):
    tamper(path, statement)
    store = SqliteStore.open(path, SetClock())

    seen, error = await read_until_it_breaks(
        store.read(SESSION) if how == "read" else store.read_all()
    )

    assert list(range(1, 30)) == seen
    where = 0 if (how, "DELETE" in statement) == ("read", True) else 31
    assert where == error.position
    await store.close()


@pytest.mark.parametrize("how", ["read", "read_all", "sessions"])
async def test_a_damaged_page_is_named_and_what_is_before_loads(path, how):
    deface(path, 30)
    store = SqliteStore.open(path, SetClock())
    ways = {
        "read": store.read(SESSION),
        "read_all": store.read_all(),
        "sessions": store.read_all(0, ["session"]),
    }

    seen, error = await read_until_it_breaks(ways[how])

    assert seen
    assert list(range(1, len(seen) + 1)) == seen
    assert 26 < len(seen) < 30
    assert len(seen) + 2 == error.position
    await store.close()


class FailingCursor:
    def execute(self, *_):
        raise failure(IO_ERROR)

    def close(self):
        pass


# Else what comes after would be taken for not there.
async def test_a_log_that_cannot_be_read_now_does_not_end_there(path):
    reader = SqliteReader(LogFile(path))
    reader.close()
    reader._db = SimpleNamespace(cursor=FailingCursor)

    with pytest.raises(LogUnavailableError, match="the disk failed"):
        await reader.log_page(0, EVENTS, None)


async def test_a_stream_that_lost_its_end_says_so(path):
    tamper(path, f"DELETE FROM events WHERE version = {EVENTS}")
    store = SqliteStore.open(path, SetClock())

    seen, error = await read_until_it_breaks(store.read(SESSION))

    assert EVENTS - 1 == len(seen)
    assert (SESSION, EVENTS) == (error.stream, error.version)
    await store.close()


async def test_who_follows_sees_what_another_process_appends(path):
    here, there = (SqliteStore.open(path, SystemClock()) for _ in "ab")
    following = here.follow(EVENTS, {"session"})

    first = asyncio.ensure_future(anext(following))
    assert EVENTS + 1 == (await first).position
    second = asyncio.ensure_future(anext(following))
    await asyncio.wait([second], timeout=0)
    await begin(there, OTHER)

    assert EVENTS + 2 == (await asyncio.wait_for(second, PATIENCE_SECONDS)).position
    await here.close()
    await there.close()


async def test_nobody_looks_for_others_when_nobody_follows(path):
    store = SqliteStore.open(path, SetClock())
    following = [asyncio.ensure_future(anext(store.follow(EVENTS + 1))) for _ in "ab"]
    await await_until(lambda: store._followers == 2)
    watch = store._watch

    for task in following:
        task.cancel()
    await asyncio.wait([*following, watch])

    assert watch.cancelled()
    assert store._watch is None
    await store.close()


async def test_closing_ends_who_follows(path):
    store = SqliteStore.open(path, SetClock())
    following = asyncio.ensure_future(anext(store.follow(EVENTS + 1)))
    await await_until(lambda: store._followers)

    await store.close()

    with pytest.raises(LogUnavailableError):
        await following


async def test_a_reader_keeps_no_transaction_open(path):
    store = SqliteStore.open(path, SetClock())
    reading = store.read(SESSION)
    await anext(reading)
    other = sqlite_library().connect(path, isolation_level=None)

    busy, log, done = other.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()

    assert (0, 0, 0) == (busy, log, done)
    assert list(range(2, EVENTS + 1)) == versions([event async for event in reading])
    other.close()
    await store.close()


async def test_a_blob_that_was_put_lately_is_not_written_again(tmp_path):
    clock = SetClock()
    store, other = (SqliteStore.open(tmp_path / "log.db", clock) for _ in range(2))
    blob = await store.put_blob(b"an agent")
    before = other._reader.data_version()

    assert blob == await store.put_blob(b"an agent")
    unchanged = other._reader.data_version()
    clock.move(timedelta(hours=13))
    assert blob == await store.put_blob(b"an agent")

    assert before == unchanged != other._reader.data_version()
    await store.close()
    await other.close()
