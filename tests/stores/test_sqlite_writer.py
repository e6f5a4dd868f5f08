import asyncio
import os
import threading

import pytest

from cueline.errors import (
    LogLostError,
    LogUnavailableError,
    MissingBlobError,
    UnknownOutcomeError,
    WrongExpectedVersionError,
)
from cueline.events.store import ANY, NO_STREAM, Write
from cueline.sqlite_library import sqlite_library
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
    positions,
    whole_log,
)
from tests.stores.faulty import FULL, IO_ERROR, failure, open_faulty


@pytest.fixture
async def faulty(tmp_path):
    store, connections = open_faulty(tmp_path / "log.db", SetClock())
    yield store, connections
    await store.close()


async def is_whole(store, streams):
    assert list(range(1, await store.last_position() + 1)) == positions(await whole_log(store))
    for stream in streams:
        check_chain(await all_of(store, stream))


async def test_what_queues_together_is_committed_together(faulty):
    store, connections = faulty

    await asyncio.gather(*(begin(store, f"session-default/{n}") for n in range(200)))

    assert 1 == len(connections.commit_threads)


async def test_a_group_has_its_limits(faulty):
    store, connections = faulty
    large = [Write(INBOX, [fact(bytes(400_000))], ANY)]

    await asyncio.gather(*(store.append(large, key=f"k{n}") for n in range(6)))
    assert 3 == len(connections.commit_threads)

    await asyncio.gather(*(begin(store, f"session-default/{n}") for n in range(600)))
    assert 6 == len(connections.commit_threads)


async def test_what_queues_during_a_commit_goes_in_the_next(faulty):
    store, connections = faulty
    store._writer._mean_seconds = 1.0
    first = asyncio.ensure_future(begin(store))
    while not connections.commit_threads:
        await asyncio.wait([first], timeout=0)

    await asyncio.gather(first, *(begin(store, f"inbox-default/{n}") for n in range(50)))

    assert 2 == len(connections.commit_threads)


async def test_a_small_quick_commit_stays_on_the_loop(faulty):
    # 004-084: what may take longer goes to a thread.
    store, connections = faulty

    await begin(store)
    await asyncio.gather(*(begin(store, f"inbox-default/{n}") for n in range(5)))
    store._writer._mean_seconds = 1.0
    await begin(store, OTHER)

    here = threading.get_ident()
    assert [True, False, False] == [thread == here for thread in connections.commit_threads]


@pytest.mark.parametrize("names", [[SESSION], [SESSION, OTHER]], ids=len)
async def test_a_bug_in_one_append_is_that_callers_alone(faulty, names):
    store, _ = faulty
    writes = [Write(INBOX, [fact(occurred_us=2**63)], ANY)]  # SQLite refuses it
    together = [store.append(writes, key="k"), *(begin(store, name) for name in names)]

    wrong, *others = await asyncio.gather(*together, return_exceptions=True)

    assert isinstance(wrong, Exception)
    assert list(range(1, len(names) + 1)) == [appended.position for appended in others]
    await is_whole(store, names)


@pytest.mark.parametrize("took_place", [False, True])
async def test_after_an_error_in_the_commit_nobody_knows_and_may_ask_again(faulty, took_place):
    store, connections = faulty
    (connections.after if took_place else connections.before)["COMMIT"] = failure(IO_ERROR)
    names = [SESSION, OTHER]

    together = await asyncio.gather(*(begin(store, n) for n in names), return_exceptions=True)
    again = [await begin(store, name) for name in names]

    assert [UnknownOutcomeError] * 2 == [type(result) for result in together]
    assert names == [error.stream for error in together]
    assert [1, 2] == [appended.position for appended in again]
    assert 2 == connections.opened
    await is_whole(store, names)


@pytest.mark.parametrize("statement", ["BEGIN IMMEDIATE", "COMMIT"])
async def test_a_full_disk_takes_nothing_and_says_so(faulty, statement):
    store, connections = faulty
    connections.before[statement] = failure(FULL)

    with pytest.raises(LogUnavailableError, match="the disk is full"):
        await begin(store)

    assert 0 == await store.last_position()
    assert 1 == (await begin(store)).position


async def test_the_log_goes_on_when_space_returns(faulty):
    store, connections = faulty
    await begin(store)
    pages = connections.last.db.execute("PRAGMA page_count").fetchone()[0]
    connections.last.db.execute(f"PRAGMA max_page_count = {pages + 3}")
    large = [Write(SESSION, [fact(b"x" * 5_000)] * 4, 1), Write(INBOX, facts(1), ANY)]

    with pytest.raises(LogUnavailableError, match="the disk is full"):
        await store.append(large, key="k")

    assert [1] == positions(await whole_log(store))
    connections.last.db.execute("PRAGMA max_page_count = 100000")
    assert 6 == (await store.append(large, key="k")).position
    await is_whole(store, [SESSION, INBOX])


async def test_a_file_that_is_gone_for_a_while_is_opened_again(faulty):
    store, connections = faulty
    connections.before["BEGIN IMMEDIATE"] = failure(IO_ERROR)
    connections.before["ROLLBACK"] = failure(IO_ERROR)

    with pytest.raises(LogUnavailableError, match="the disk failed"):
        await begin(store)

    assert 1 == (await begin(store)).position


async def test_an_append_waits_while_another_process_writes(faulty):
    store, connections = faulty
    other = sqlite_library().connect(store.path, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    appending = [asyncio.ensure_future(begin(store, n)) for n in (SESSION, OTHER)]
    await asyncio.wait(appending, timeout=0.01)

    other.execute("COMMIT")

    assert [1, 2] == [appended.position for appended in await asyncio.gather(*appending)]
    assert 1 == len(connections.commit_threads)
    other.close()


async def test_who_keeps_the_lock_is_named_in_the_end(tmp_path):
    store, _ = open_faulty(tmp_path / "log.db", SetClock(), patience_seconds=0.0)
    other = sqlite_library().connect(store.path, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")

    with pytest.raises(LogUnavailableError, match=rf"process {os.getpid()} keeps it locked"):
        await begin(store)

    other.execute("ROLLBACK")
    assert 1 == (await begin(store)).position
    other.close()
    await store.close()


async def test_closing_writes_what_is_queued(tmp_path):
    store, _ = open_faulty(tmp_path / "log.db", SetClock())
    appending = [asyncio.ensure_future(begin(store, n)) for n in (SESSION, OTHER)]
    await asyncio.wait(appending, timeout=0)

    await store.close()

    assert [1, 2] == [appended.position for appended in await asyncio.gather(*appending)]


async def test_who_waits_for_a_writer_that_ends_is_told(tmp_path):
    store, _ = open_faulty(tmp_path / "log.db", SetClock())
    other = sqlite_library().connect(store.path, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    appending = asyncio.ensure_future(begin(store))
    await asyncio.wait([appending], timeout=0.005)

    store._writer._task.cancel()

    with pytest.raises(UnknownOutcomeError):
        await appending
    other.close()
    await store.close()


async def test_a_large_blob_leaves_the_loop_to_others(faulty):
    store, connections = faulty

    blob = await store.put_blob(bytes(2_000_000))

    assert threading.get_ident() not in connections.commit_threads
    assert 2_000_000 == len(await store.get_blob(blob))


async def test_a_blob_that_was_altered_is_missed(faulty):
    store, connections = faulty
    blob = await store.put_blob(b"content")
    connections.last.db.execute("DROP TRIGGER blobs_never_change")
    connections.last.db.execute("UPDATE blobs SET content = x'00'")

    with pytest.raises(MissingBlobError):
        await store.get_blob(blob)


async def test_a_refused_append_leaves_nothing_behind(faulty):
    store, connections = faulty
    with pytest.raises(WrongExpectedVersionError):
        await store.append([Write(SESSION, facts(1), 5)], key="k")

    for table in ("streams", "events", "appends"):
        rows = connections.last.db.execute(f"SELECT count(*) FROM {table}").fetchone()
        assert (0,) == rows

    assert 1 == (await store.append([Write(SESSION, facts(1), NO_STREAM)], "k")).position


async def test_a_log_that_was_moved_away_does_not_come_back_empty(tmp_path):
    store, connections = open_faulty(tmp_path / "log.db", SetClock())
    await begin(store)
    connections.before["COMMIT"] = failure(IO_ERROR)
    store.path.rename(tmp_path / "moved.db")
    with pytest.raises(UnknownOutcomeError):
        await begin(store, OTHER)

    with pytest.raises(LogLostError, match="was removed while it was in use"):
        await begin(store, OTHER)

    assert not store.path.exists()
    await store.close()
