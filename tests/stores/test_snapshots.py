import pytest

from cueline.clock import SystemClock
from cueline.errors import LogUnavailableError
from cueline.events.snapshot import SnapshotRow
from cueline.events.store import ANY, Write
from cueline.sqlite_library import sqlite_library
from cueline.stores import MemorySnapshots, SqliteSnapshots
from cueline.stores.backend import backend_of
from cueline.testing.event_store_example import FORK, OTHER, SESSION, begin, facts
from cueline.testing.snapshot_contract import SnapshotContract, keep


class TestMemorySnapshots(SnapshotContract):
    @pytest.fixture
    def store(self):
        return MemorySnapshots()


@pytest.fixture
def path(tmp_path):
    return tmp_path / "log.db.snapshots"


class TestSqliteSnapshots(SnapshotContract):
    @pytest.fixture
    def store(self, tmp_path):
        return SqliteSnapshots(tmp_path / "log.db.snapshots")


@pytest.fixture
async def store(path):
    store = SqliteSnapshots(path)
    await keep(store, 3, after=0)
    return store


async def test_it_is_private(store, path):
    assert 0o600 == path.stat().st_mode & 0o777


def remove(path):
    path.unlink()


def overwrite(path):
    path.write_bytes(b"no database at all" * 300)


def cut(path):
    with path.open("r+b") as file:
        file.truncate(5_000)


def clear(path):
    path.write_bytes(b"")


def rebuild(path):
    path.unlink()
    db = sqlite_library().connect(path)
    db.execute("CREATE TABLE snapshots (something_else)")
    db.close()


@pytest.mark.parametrize("damage", [remove, overwrite, cut, clear, rebuild])
async def test_a_damaged_file_holds_nothing_and_is_begun_anew(store, path, damage):
    damage(path)

    assert await store.newest(SESSION) is None
    await keep(store, 5, after=0)
    assert b"s5" == await store.newest(SESSION)


@pytest.mark.parametrize("damage", [remove, overwrite, cut, clear, rebuild])
async def test_a_damaged_file_can_be_forgotten(store, path, damage):
    damage(path)

    await store.forget([SESSION])

    assert not path.exists() or b"c3" not in path.read_bytes()


async def test_what_is_forgotten_is_overwritten(path):
    store = SqliteSnapshots(path)
    await store.keep(SESSION, SnapshotRow(3, b"state", b"secret" * 5_000, 0, {SESSION}))
    assert b"secret" in path.read_bytes()

    await store.forget([SESSION])

    assert [] == [p for p in path.parent.iterdir() if b"secret" in p.read_bytes()]


async def test_where_another_process_writes_there_are_none_for_a_while(store, path, monkeypatch):
    monkeypatch.setattr("cueline.stores.snapshots._PATIENCE_SECONDS", 0.0)
    monkeypatch.setattr("cueline.stores.snapshots._FORGET_SECONDS", 0.0)
    other = sqlite_library().connect(path, isolation_level=None)
    other.execute("BEGIN EXCLUSIVE")

    assert await store.newest(SESSION) is None
    await keep(store, 5, after=3)
    with pytest.raises(LogUnavailableError, match="database is locked"):
        await store.forget([SESSION])

    other.execute("COMMIT")
    assert b"s3" == await store.newest(SESSION)
    other.close()


async def test_where_nothing_can_be_written_nothing_is_kept(tmp_path):
    store = SqliteSnapshots(tmp_path / "gone" / "log.db.snapshots")

    await keep(store, 3, after=0)

    assert await store.newest(SESSION) is None


@pytest.mark.parametrize("name", ["memory:", "log.db"])
async def test_what_an_append_empties_goes_from_the_snapshots_of_its_log(
    name, tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    backend = backend_of(name)
    log, snapshots = backend.open(SystemClock()), backend.open_snapshots()
    await begin(log, OTHER)
    await begin(log, SESSION)
    await keep(snapshots, 1, after=0, stream=OTHER, of=OTHER)
    await keep(snapshots, 1, after=0)
    await keep(snapshots, 2, after=0, stream=FORK)

    await log.append([Write("inbox-default/x", facts(1), ANY, empties=[(SESSION, 1)])], "k")
    await log.close()

    left = [await snapshots.newest(stream) for stream in (OTHER, SESSION, FORK)]
    assert [b"s1", None, None] == left
