import os
from pathlib import Path

import pytest
from msgspec.structs import replace

from cueline.errors import FencedError, LogFormatError, LogUnavailableError
from cueline.events.store import ANY, Write
from cueline.sqlite_library import sqlite_library
from cueline.stores.sqlite import SqliteStore
from cueline.stores.sqlite_schema import FORMAT
from cueline.testing.event_store_example import (
    INBOX,
    SESSION,
    SetClock,
    all_of,
    begin,
    fact,
    facts,
    versions,
)
from tests.stores.made import make


@pytest.fixture
def path(tmp_path):
    return tmp_path / "log.db"


def ask(path, *statements):
    db = sqlite_library().connect(path, isolation_level=None)
    try:
        return [db.execute(statement).fetchall() for statement in statements][-1]
    finally:
        db.close()


# 004-038
async def test_a_log_is_made_with_its_folders(tmp_path):
    log_id = await make(tmp_path / "a" / "b" / "log.db")

    assert 32 == len(log_id)


async def test_a_log_goes_on_where_it_was(path):
    log_id = await make(path)

    store = SqliteStore.open(path, SetClock(), must_exist=True)

    appended = await store.append([Write(SESSION, facts(1), 3)], key="k")
    assert ((4,), 4) == (appended.versions, appended.position)
    assert [1, 2, 3, 4] == versions(await all_of(store, SESSION))
    assert log_id == store.log_id
    await store.close()


async def test_an_empty_file_becomes_a_log(path):
    path.touch()

    await make(path)


async def test_the_file_is_durable_and_guarded(path):
    await make(path)
    store = SqliteStore.open(path, SetClock())
    db = store._writer._db

    asked = ("journal_mode", "synchronous", "recursive_triggers", "foreign_keys")
    assert ["wal", 2, 1, 1] == [db.execute(f"PRAGMA {name}").fetchone()[0] for name in asked]
    await store.close()


async def test_the_wal_begins_anew_before_it_is_long(path):
    store = SqliteStore.open(path, SetClock())
    large = fact(b"x" * 100_000)

    for number in range(30):
        await store.append([Write(INBOX, [large], ANY)], f"k{number}")

    assert path.stat().st_size > 2_000_000 > path.with_name("log.db-wal").stat().st_size
    await store.close()


@pytest.mark.parametrize("how", [{"must_exist": True}, {"read_only": True}])
async def test_a_log_that_has_to_be_there_is_not_made(path, how):
    with pytest.raises(LogUnavailableError, match="there is no log"):
        SqliteStore.open(path, SetClock(), **how)

    assert not path.exists()


@pytest.mark.parametrize("content", [b"a letter, not a log", b"SQLite format 3\x00", bytes(8192)])
async def test_what_is_no_database_is_refused_untouched(path, content):
    path.write_bytes(content * 40)

    with pytest.raises(LogUnavailableError, match=r"name another file|restore"):
        SqliteStore.open(path, SetClock())

    assert content * 40 == path.read_bytes()


@pytest.mark.parametrize("how", [{}, {"read_only": True}])
@pytest.mark.parametrize(
    ("make", "why"),
    [(Path.mkdir, "it is a folder; name a file in it"), (os.mkfifo, "a pipe; name a file")],
)
async def test_what_is_no_file_is_no_log_and_is_not_waited_for(path, make, why, how):
    make(path)

    with pytest.raises(LogUnavailableError, match=why):
        SqliteStore.open(path, SetClock(), **how)


async def test_a_link_to_itself_is_no_log(path):
    path.symlink_to(path.name)

    with pytest.raises(LogUnavailableError, match="it cannot be opened"):
        SqliteStore.open(path, SetClock())


async def test_somebody_elses_database_is_refused_untouched(path):
    ask(path, "CREATE TABLE letters (text TEXT)")
    before = path.read_bytes()

    with pytest.raises(LogUnavailableError, match="not a log of cueline"):
        SqliteStore.open(path, SetClock())

    assert before == path.read_bytes()


@pytest.mark.parametrize(
    ("found", "way"),
    [(FORMAT + 1, "upgrade cueline"), (FORMAT - 1, "use the cueline that wrote it")],
)
@pytest.mark.parametrize("read_only", [False, True])
async def test_another_format_is_refused_untouched(path, found, way, read_only):
    await make(path)
    ask(path, f"UPDATE meta SET format = {found}")
    before = path.read_bytes()

    with pytest.raises(LogFormatError, match=way) as caught:
        SqliteStore.open(path, SetClock(), read_only=read_only)

    assert (str(path), found, FORMAT) == caught.value.args
    assert before == path.read_bytes()


async def test_a_newer_log_in_use_is_refused_untouched(path):
    await make(path)
    db = sqlite_library().connect(path, isolation_level=None)
    db.execute(f"UPDATE meta SET format = {FORMAT + 1}")
    wal = path.with_name("log.db-wal")
    before = path.stat().st_mtime_ns, wal.stat().st_size

    with pytest.raises(LogFormatError):
        SqliteStore.open(path, SetClock())

    assert before == (path.stat().st_mtime_ns, wal.stat().st_size)
    db.close()


async def test_a_reader_sees_what_a_living_writer_appends(path):
    writer = SqliteStore.open(path, SetClock())
    reader = SqliteStore.open(path, SetClock(), read_only=True)

    await begin(writer, events=2)

    assert [1, 2] == versions(await all_of(reader, SESSION))
    await reader.close()
    await writer.close()


async def test_a_reader_refuses_to_write(path):
    await make(path)
    store = SqliteStore.open(path, SetClock(), read_only=True)

    for options in (
        store.append([Write(INBOX, facts(1), ANY)], key="k"),
        store.acquire(SESSION, "host-a", 0),
        store.put_blob(b"content"),
        store.collect_blobs(SetClock().now()),
    ):
        with pytest.raises(LogUnavailableError, match="opened for reading only"):
            await options
    await store.close()


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE events SET payload = x'00'",
        "UPDATE events SET actor = 'user' WHERE version = 2",
        "UPDATE events SET payload = NULL, salt = NULL, actor = 'user'",
        "UPDATE events SET salt = NULL",
        "UPDATE events SET position = position + 10",
        "DELETE FROM events WHERE version = 3",
        "INSERT OR REPLACE INTO events SELECT * FROM events WHERE version = 1",
        "UPDATE appends SET count = 9",
        "DELETE FROM appends",
        "DELETE FROM streams",
        "UPDATE streams SET name = 'session-default/other'",
        "INSERT OR REPLACE INTO streams (id, name, category, head_hash) VALUES (1, 'a', 'b', 'c')",
    ],
)
async def test_what_is_recorded_cannot_be_changed(path, statement):
    await make(path)

    with pytest.raises(sqlite_library().IntegrityError):
        ask(path, "PRAGMA recursive_triggers = ON", statement)


async def test_a_payload_can_be_emptied(path):
    await make(path)

    ask(path, "UPDATE events SET payload = NULL, salt = NULL WHERE version = 2")

    assert [(1,)] == ask(path, "SELECT count(*) FROM events WHERE payload IS NULL")


async def test_two_stores_of_one_file_are_equals(path):
    one, two = (SqliteStore.open(path, SetClock()) for _ in "ab")

    epoch = await one.acquire(SESSION, "host-a", 0)
    await one.append([Write(SESSION, facts(1), 0, epoch)], key="k")
    later = await two.acquire(SESSION, "host-b", epoch)
    await two.append([Write(SESSION, facts(1), 1, later)], key="l")

    with pytest.raises(FencedError):
        await one.append([Write(SESSION, facts(1), 2, epoch)], key="m")
    assert [1, 2] == versions(await all_of(one, SESSION))
    await one.close()
    await two.close()


async def test_a_turn_takes_little_more_than_its_text(path):
    store = SqliteStore.open(path, SetClock())
    epoch = await store.acquire(SESSION, "host-a", 0)
    text, version = fact(b"x" * 205, correlation_id="t"), 0
    texts = [replace(text, attrs='{"tool":"search"}'), text, text, text, text]

    for _ in range(100):
        for drafts in (texts[:3], texts[3:]):
            write = Write(SESSION, drafts, version, epoch)
            version = (await store.append([write], key=None)).versions[0]
    await store.close()

    assert path.stat().st_size / (100 * 5 * 205) < 3.3


async def test_a_log_may_be_named_by_a_link(path, tmp_path):
    await make(path)
    link = tmp_path / "elsewhere" / "link.db"
    link.parent.mkdir()
    link.symlink_to(path)

    by_name, by_link = SqliteStore.open(path, SetClock()), SqliteStore.open(link, SetClock())
    await by_link.append([Write(SESSION, facts(1), 3)], key="k")

    assert [1, 2, 3, 4] == versions(await all_of(by_name, SESSION))
    await by_link.close()
    await by_name.close()


async def test_a_strange_name_is_a_name(tmp_path):
    await make(tmp_path / "größer #1?mode=ro%20" / "log.db")

    assert (tmp_path / "größer #1?mode=ro%20" / "log.db").stat().st_size > 0


async def test_what_was_emptied_is_in_the_file_no_more(path):
    said, long = b"c4nary-of-ada " * 200, b"c4nary-of-bob " * 9_000
    store = SqliteStore.open(path, SetClock())
    blob = await store.put_blob(long)
    await store.append([Write(INBOX, [fact(said, blobs=(blob,)), *facts(3)], ANY)], "k")
    epoch = await store.acquire(SESSION, "host-a", 0)

    await store.append([Write(SESSION, facts(1), 0, epoch, empties=[(INBOX, 1)])], None)
    await store.close()

    assert [path] == list(path.parent.iterdir())
    assert 0 == path.read_bytes().count(b"c4nary")
