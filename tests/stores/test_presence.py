import asyncio
import shutil

import pytest

from cueline.clock import SystemClock
from cueline.errors import LogUnavailableError
from cueline.sqlite_library import sqlite_library
from cueline.stores.backend import backend_of
from cueline.stores.presence import MemoryPresence, SqlitePresence
from cueline.testing.event_store_example import SetClock
from cueline.testing.presence_contract import HOST, RUNNER, PresenceContract


class TestMemoryPresence(PresenceContract):
    @pytest.fixture
    def board(self, clock):
        return MemoryPresence(clock)


class TestSqlitePresence(PresenceContract):
    @pytest.fixture
    async def board(self, clock, tmp_path):
        board = SqlitePresence(tmp_path / "presence.db", clock)
        yield board
        await board.close()


@pytest.fixture
def path(tmp_path):
    return tmp_path / "beside" / "presence.db"


async def test_every_process_sees_the_same_board(path):
    one, two = (SqlitePresence(path, SetClock()) for _ in "ab")

    await one.beat(HOST)
    await two.beat(RUNNER)

    assert 2 == len(await one.all()) == len(await two.all())
    await one.close()
    await two.close()


async def test_a_log_has_one_board_by_whatever_link_it_is_reached(tmp_path):
    """000-034: whoever reaches a log by a link sees who drives its sessions."""
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "link.db").symlink_to("elsewhere/log.db")
    paths = (tmp_path / "elsewhere" / "log.db", tmp_path / "link.db")
    one, two = (backend_of(path).open_presence(SetClock()) for path in paths)

    await one.beat(HOST)

    assert await one.all() == await two.all() != []
    await one.close()
    await two.close()


# On a full disk, who lives would count as dead.
async def test_who_has_beaten_for_a_while_takes_no_more_room(path):
    board = SqlitePresence(path, SystemClock())
    for _ in range(50):
        await board.beat(HOST)
    before = room_of(path)
    for _ in range(150):
        await board.beat(HOST)
    after = room_of(path)
    await board.close()

    assert before == after


def room_of(path):
    return {file.name: file.stat().st_size for file in path.parent.iterdir()}


async def test_a_beat_waits_for_another_processs_beat(path):
    board = SqlitePresence(path, SetClock())
    other = sqlite_library().connect(path, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")

    beating = asyncio.ensure_future(board.beat(HOST))
    asyncio.get_running_loop().call_later(0.01, other.execute, "COMMIT")
    await beating

    assert 1 == len(await board.all())
    other.close()
    await board.close()


async def test_a_board_that_stays_locked_is_unavailable(path):
    board = SqlitePresence(path, SetClock(), patience_seconds=0.0)
    other = sqlite_library().connect(path, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")

    with pytest.raises(LogUnavailableError):
        await board.beat(HOST)

    other.close()
    await board.close()


async def test_a_damaged_board_is_begun_anew(path):
    path.parent.mkdir()
    path.write_bytes(b"no database at all" * 300)

    board = SqlitePresence(path, SetClock())
    await board.beat(HOST)

    assert 1 == len(await board.all())
    assert path.with_name("presence.db.damaged").exists()
    await board.close()


@pytest.mark.parametrize("parts", ["presence.db", "presence.db*"])
async def test_a_board_that_is_removed_is_made_again_for_all(path, parts):
    one, two = (SqlitePresence(path, SetClock()) for _ in "ab")
    await two.beat(RUNNER)
    for part in path.parent.glob(parts):
        part.unlink()

    await one.beat(HOST)
    await two.beat(RUNNER)

    assert 2 == len(await one.all()) == len(await two.all())
    await one.close()
    await two.close()


async def test_a_board_does_not_come_back_without_its_folder(path):
    board = SqlitePresence(path, SetClock())
    shutil.rmtree(path.parent)

    await board.beat(HOST)
    await board.leave(HOST.incarnation)

    assert not path.parent.exists()
    await board.close()


async def test_a_board_that_was_closed_says_so(path):
    board = SqlitePresence(path, SetClock())
    await board.close()

    with pytest.raises(LogUnavailableError):
        await board.beat(HOST)
    with pytest.raises(LogUnavailableError):
        await board.all()


def test_a_board_without_a_place_is_unavailable(tmp_path):
    (tmp_path / "file").touch()

    with pytest.raises(LogUnavailableError):
        SqlitePresence(tmp_path / "file" / "presence.db", SetClock())


async def test_a_damaged_board_that_cannot_be_put_aside_is_unavailable_until_it_can(path):
    # An error of another kind would end whoever beats, and others take its sessions.
    board = SqlitePresence(path, SetClock())
    await board.beat(HOST)
    for part in path.parent.iterdir():
        with part.open("r+b") as file:
            file.write(b"no database at all" * 300)
    in_the_way = path.with_name("presence.db.damaged")
    in_the_way.mkdir()

    for _ in "ab":
        with pytest.raises(LogUnavailableError):
            await board.beat(HOST)

    in_the_way.rmdir()
    await board.beat(HOST)
    assert 1 == len(await board.all())
    await board.close()
