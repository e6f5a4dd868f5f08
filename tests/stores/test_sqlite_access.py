"""Who may read and write a log, as its file and folder say."""

import contextlib
import os
import tempfile
from pathlib import Path

import pytest

from cueline.errors import LogUnavailableError
from cueline.stores.backend import backend_of
from cueline.stores.presence import SqlitePresence
from cueline.stores.sqlite import SqliteStore
from cueline.testing.event_store_example import (
    SetClock,
    whole_log,
)
from tests.stores.made import make


@pytest.fixture
def path(tmp_path):
    return tmp_path / "log.db"


@pytest.fixture
def readable():
    """A folder that everybody may look into; the test's own is its owner's."""
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)
        yield Path(folder)
        Path(folder).chmod(0o755)


@contextlib.contextmanager
def nobody():
    """Be nobody for a while: for root, everything may be written."""
    if os.geteuid() != 0:
        yield
        return
    os.seteuid(65534)
    try:
        yield
    finally:
        os.seteuid(0)


async def test_a_log_is_for_its_owner_alone(path):
    before = os.umask(0)
    try:
        store = SqliteStore.open(path, SetClock())
        board = SqlitePresence(path.with_name("log.db.presence"), SetClock())
        with contextlib.closing(backend_of(path).open_views()) as views:
            await views.catch_up(store)
            modes = {file.name: file.stat().st_mode & 0o777 for file in path.parent.iterdir()}
    finally:
        os.umask(before)
    await board.close()
    await store.close()

    of_each = ("", "-wal", "-shm")
    named = {f"log.db{of}{end}" for of in ("", "-views.db", ".presence") for end in of_each}
    assert dict.fromkeys(named, 0o600) == modes


async def test_a_log_that_is_shared_stays_so(path):
    await make(path)
    path.chmod(0o660)

    await SqliteStore.open(path, SetClock()).close()

    assert 0o660 == path.stat().st_mode & 0o777


async def test_a_folder_that_cannot_be_made_is_named(tmp_path):
    (tmp_path / "file").touch()

    with pytest.raises(LogUnavailableError, match="its folder cannot be made"):
        SqliteStore.open(tmp_path / "file" / "deep" / "log.db", SetClock())


async def test_a_folder_that_may_not_be_written_is_named(readable):
    readable.chmod(0o555)

    with nobody(), pytest.raises(LogUnavailableError, match="may be written"):
        SqliteStore.open(readable / "log.db", SetClock())


async def test_a_log_that_may_not_be_written_is_refused(readable):
    await make(readable / "log.db")
    (readable / "log.db").chmod(0o444)
    readable.chmod(0o777)

    with nobody(), pytest.raises(LogUnavailableError, match="mend its permissions"):
        SqliteStore.open(readable / "log.db", SetClock())


@pytest.mark.parametrize("folder", [0o777, 0o555])
async def test_who_may_not_write_may_read(readable, folder):
    await make(readable / "log.db")
    (readable / "log.db").chmod(0o444)
    readable.chmod(folder)

    with nobody():
        store = SqliteStore.open(readable / "log.db", SetClock(), read_only=True)
        assert 3 == len(await whole_log(store))
        await store.close()
