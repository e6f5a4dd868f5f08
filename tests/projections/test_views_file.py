"""The file of the read models: damaged, shared, of another version, or without room (I1)."""

import asyncio
from pathlib import Path

import pytest

from cueline.errors import LogUnavailableError
from cueline.projections import views as module
from cueline.projections.audit import audit
from cueline.projections.cost import descendants, spent
from cueline.projections.session import list_sessions
from cueline.projections.views import Views
from cueline.sqlite_library import sqlite_library
from cueline.testing.wait import await_until


async def test_another_version_of_the_tables_is_filled_anew(busy):
    await busy.caught_up()
    before = busy.dump()
    busy.views.db.execute("UPDATE sessions SET goal = 'as it was told before'")
    busy.views.db.execute(f"PRAGMA user_version = {module.VERSION + 1}")

    busy.reopen()

    assert [] == list_sessions(busy.views.db)
    await busy.caught_up()
    assert before == busy.dump()


async def test_a_damaged_file_is_filled_anew(busy):
    busy.views.close()
    busy.path.write_bytes(b"this is no database, but it is long enough to look at" * 100)

    busy.views = Views(busy.path)
    await busy.caught_up()

    assert 2 == len(list_sessions(busy.views.db))


def indexes(log):
    """Return the names of the indexes in the file."""
    sql = "SELECT name FROM sqlite_schema WHERE type = 'index' AND sql IS NOT NULL"
    return {name for (name,) in log.views.db.execute(sql)}


async def test_a_long_log_is_read_into_an_empty_file_without_indexes(busy, monkeypatch):
    monkeypatch.setattr(module, "FILL", 3)
    before, seen = indexes(busy), []

    await busy.views.catch_up(
        busy.store, batch=4, progress=lambda *at: seen.append((*at, len(indexes(busy))))
    )

    end = await busy.store.last_position()
    assert [(0, end, 0), (4, end, 0)] == seen[:2]
    assert (end, end) == seen[-1][:2]
    assert before == indexes(busy)
    assert [(1,), (1,)] == [
        busy.views.db.execute(f"PRAGMA {name}").fetchone()
        for name in ("secure_delete", "synchronous")
    ]


async def test_a_cut_off_filling_gets_its_indexes_later(busy, monkeypatch):
    def cut(position, _end):
        if position:
            raise KeyboardInterrupt

    monkeypatch.setattr(module, "FILL", 3)
    before = indexes(busy)
    with pytest.raises(KeyboardInterrupt):
        await busy.views.catch_up(busy.store, batch=4, progress=cut)
    assert set() == indexes(busy)

    busy.reopen()
    await busy.caught_up()

    assert before == indexes(busy)
    assert await busy.store.last_position() == len(audit(busy.views.db))


async def test_a_file_that_two_processes_fill_forgets_again_what_is_removed(busy, monkeypatch):
    monkeypatch.setattr(module, "FILL", 3)
    other = Views(busy.path)

    # Each may find that the other one has made the indexes.
    await asyncio.gather(*(each.catch_up(busy.store, batch=1) for each in (busy.views, other)))

    for each in (busy.views, other):
        assert (1,) == each.db.execute("PRAGMA secure_delete").fetchone()
    other.close()


def spoil(busy, table):
    """Overwrite the first page of *table* in the file, as a failing disk would."""
    sql = "SELECT rootpage FROM sqlite_master WHERE name = ?"
    (page,) = busy.views.db.execute(sql, [table]).fetchone()
    (size,) = busy.views.db.execute("PRAGMA page_size").fetchone()
    busy.views.close()
    with busy.path.open("r+b") as file:
        file.seek((page - 1) * size)
        file.write(b"\xff" * size)
    busy.views = Views(busy.path)


async def test_a_file_that_turns_out_to_be_damaged_is_filled_anew(busy, facts):
    await busy.caught_up()
    spoil(busy, "events")

    await busy.tell("c", facts.STARTED)

    assert 3 == len(list_sessions(busy.views.db))
    assert await busy.store.last_position() == len(audit(busy.views.db))


@pytest.fixture
def wal(busy):
    return Path(f"{busy.path}-wal")


async def test_a_damaged_file_that_cannot_be_made_anew_is_as_soon_as_it_can(busy, facts, wal):
    await busy.caught_up()
    spoil(busy, "events")
    wal.unlink(missing_ok=True)
    wal.mkdir()

    for _ in range(2):
        with pytest.raises(LogUnavailableError):
            await busy.tell("c", facts.STARTED)

    wal.rmdir()
    await busy.caught_up()
    assert 3 == len(list_sessions(busy.views.db))


async def test_a_wal_that_grew_gives_its_room_back(busy, facts, wal):
    db = await busy.caught_up()
    db.execute("UPDATE sessions SET goal = hex(zeroblob(35000000))")
    assert wal.stat().st_size > 64 * 1024 * 1024

    await busy.tell("c", facts.STARTED)

    assert wal.stat().st_size <= 64 * 1024 * 1024


@pytest.mark.parametrize(
    ("table", "look"),
    [
        ("sessions", list_sessions),
        ("usage", spent),
        ("sessions", lambda db: descendants(db, "session-default/a")),
    ],
)
async def test_who_looks_at_damage_is_told_what_to_do(busy, table, look):
    await busy.caught_up()
    spoil(busy, table)

    with pytest.raises(LogUnavailableError, match="delete their file"):
        look(busy.views.db)


async def test_who_waits_for_another_process_lets_others_run(busy):
    other = Views(busy.path)
    other.db.execute("BEGIN IMMEDIATE")
    said = []
    busy.views.db.set_trace_callback(said.append)
    waiting = asyncio.create_task(busy.caught_up())
    await await_until(lambda: said.count("BEGIN IMMEDIATE") > 1)

    other.db.execute("COMMIT")

    assert 2 == len(list_sessions(await waiting))
    other.close()


def test_two_processes_may_make_the_file_at_once(tmp_path, monkeypatch):
    class Waiting:
        def wait(self, _seconds):
            first.execute("COMMIT")

    first = sqlite_library().connect(tmp_path / "views.db", isolation_level=None)
    first.execute("BEGIN EXCLUSIVE")
    monkeypatch.setattr(module, "Event", Waiting)

    second = Views(tmp_path / "views.db")

    assert [] == list_sessions(second.db)
    second.close()
    first.close()


async def test_who_waits_too_long_is_told_so(busy, monkeypatch):
    monkeypatch.setattr(module, "PATIENCE_SECONDS", 0)
    other = Views(busy.path)
    other.db.execute("BEGIN IMMEDIATE")

    with pytest.raises(LogUnavailableError, match="locked"):
        await busy.caught_up()
    other.close()


async def test_a_file_without_room_keeps_what_it_had_and_goes_on(busy, facts):
    await busy.caught_up()
    (pages,) = busy.views.db.execute("PRAGMA page_count").fetchone()
    busy.views.db.execute(f"PRAGMA max_page_count = {pages}")
    for n in range(200):
        await busy.append(f"session-default/c{n}", facts.STARTED)

    with pytest.raises(LogUnavailableError, match="full"):
        await busy.caught_up()
    assert 2 == len(list_sessions(busy.views.db))
    busy.views.db.execute("PRAGMA max_page_count = 1000000")

    assert 202 == len(list_sessions(await busy.caught_up(), limit=1000))


def test_a_file_that_cannot_be_made_is_told(tmp_path):
    with pytest.raises(LogUnavailableError, match="unable to open"):
        Views(tmp_path / "missing" / "views.db")
