import asyncio
import os
import shutil
import sys

import pytest

from cueline.clock import SystemClock
from cueline.errors import LogIndexLostError, LogLostError
from cueline.stores import sqlite_file
from cueline.stores.backend import backend_of
from cueline.stores.sqlite import SqliteStore
from cueline.testing.event_store_example import (
    OTHER,
    SESSION,
    all_of,
    begin,
    versions,
)


@pytest.fixture
def path(tmp_path):
    return tmp_path / "folder" / "log.db"


@pytest.fixture
async def store(path):
    store = SqliteStore.open(path, SystemClock())
    await begin(store)
    yield store
    await store.close()


def remove_all(path):
    shutil.rmtree(path.parent)


def remove_wal(path):
    path.with_name("log.db-wal").unlink()


def replace(path):
    path.with_name("other.db").write_bytes(path.read_bytes())
    path.with_name("other.db").replace(path)


def cut(path):
    os.truncate(path, path.stat().st_size // 2)


def remove_index(path):
    path.with_name("log.db-shm").unlink()


LOSSES = [
    (remove_all, "the log was removed"),
    (replace, "the log was replaced by another file"),
    (cut, "the log was cut short"),
    (remove_wal, "log.db-wal was removed"),
    (remove_index, "log.db-shm was removed while it was in use; what was recorded is kept"),
]


@pytest.fixture(autouse=True)
def _looked_at_always(monkeypatch):
    monkeypatch.setattr(sqlite_file, "LOOK_SECONDS", 0.0)


@pytest.mark.parametrize(("lose", "told"), LOSSES)
async def test_what_goes_to_a_file_that_nobody_finds_is_not_durable(store, path, lose, told):
    lose(path)

    with pytest.raises(LogLostError, match=told) as lost:
        await begin(store, OTHER)

    assert str(path) == lost.value.path
    with pytest.raises(LogLostError):
        await store.acquire(SESSION, "another", 1)
    with pytest.raises(LogLostError):
        await store.put_blob(b"content")


async def test_all_of_a_group_learn_that_the_log_is_lost(store, path):
    remove_all(path)

    together = [begin(store, f"session-default/{n}") for n in range(20)]

    results = await asyncio.gather(*together, return_exceptions=True)
    assert {LogLostError} == {type(result) for result in results}


ELSEWHERE = f"""
import asyncio
from cueline.clock import SystemClock
from cueline.stores.sqlite import SqliteStore
from cueline.testing.event_store_example import begin

async def main():
    store = SqliteStore.open("log.db", SystemClock())
    await begin(store, {OTHER!r})
    await store.close()

asyncio.run(main())
"""


async def test_two_that_share_no_index_do_not_write_over_each_other(store, path):
    """I3: SQLite would take what the other wrote for what is free."""
    remove_index(path)
    command = (sys.executable, "-c", ELSEWHERE)
    other = await asyncio.create_subprocess_exec(*command, cwd=path.parent)
    assert 0 == await other.wait()

    with pytest.raises(LogIndexLostError, match="was replaced by another file"):
        await begin(store, "session-default/lost")
    await store.close()

    again = SqliteStore.open(path, SystemClock())
    assert [1] == versions(await all_of(again, SESSION))
    assert [1] == versions(await all_of(again, OTHER))
    assert [] == await all_of(again, "session-default/lost")
    await again.close()


@pytest.mark.parametrize("lose", [remove_all, replace, remove_wal, remove_index])
async def test_who_follows_a_log_learns_that_it_is_lost(store, path, lose):
    reader = SqliteStore.open(path, SystemClock(), read_only=True)
    following = [asyncio.ensure_future(_all_that_come(each)) for each in (store, reader, reader)]
    await asyncio.wait(following, timeout=0)

    lose(path)

    for each in following:
        with pytest.raises(LogLostError):
            await each
    await reader.close()


async def test_who_only_reads_keeps_the_wal_where_others_come_and_go(store, path):
    reader = SqliteStore.open(path, SystemClock(), read_only=True)
    await store.close()
    for stream in (OTHER, f"{OTHER}.2"):
        other = SqliteStore.open(path, SystemClock())
        await begin(other, stream)
        await other.close()

        assert [1] == versions(await all_of(reader, stream))
        assert await reader.last_position()
    await reader.close()


async def _all_that_come(store):
    async for _ in store.follow(0):
        pass


async def test_who_lists_what_a_lost_log_held_is_told(store, path):
    views = backend_of(path).open_views()
    await views.catch_up(store)
    replace(path)

    with pytest.raises(LogLostError):
        await views.catch_up(store)

    views.close()


async def test_closing_a_lost_log_leaves_what_took_its_place_alone(path):
    lost = SqliteStore.open(path, SystemClock())
    await begin(lost)
    remove_all(path)
    new = SqliteStore.open(path, SystemClock())
    await begin(new, OTHER)

    await lost.close()

    assert path.with_name("log.db-wal").exists()
    assert [1] == versions(await all_of(new, OTHER))
    await new.close()


async def test_a_log_that_is_put_back_has_all_that_was_recorded(store, path):
    path.rename(path.with_name("elsewhere.db"))
    with pytest.raises(LogLostError):
        await begin(store, OTHER)
    await store.close()

    path.with_name("elsewhere.db").rename(path)

    again = SqliteStore.open(path, SystemClock())
    assert versions(await all_of(again, SESSION))
    await again.close()


async def test_read_models_that_are_removed_are_missed_by_nobody(store, path):
    views = backend_of(path).open_views()
    for part in path.parent.glob("log.db-views*"):
        part.unlink()

    assert await store.last_position() == await views.catch_up(store)
    views.close()


async def test_a_link_that_leads_elsewhere_now_loses_nothing(store, path, tmp_path, monkeypatch):
    link = tmp_path / "link.db"
    link.symlink_to(path)
    linked = SqliteStore.open(link, SystemClock())
    link.unlink()
    link.symlink_to(tmp_path / "another.db")
    monkeypatch.chdir(tmp_path)

    await begin(linked, OTHER)

    assert versions(await all_of(store, OTHER))
    await linked.close()


async def test_a_log_named_from_where_we_were_is_found_from_elsewhere(path, tmp_path, monkeypatch):
    path.parent.mkdir()
    monkeypatch.chdir(path.parent)
    store = SqliteStore.open(path.name, SystemClock())
    os.chdir(tmp_path)

    assert 1 == (await begin(store)).position

    await store.close()
