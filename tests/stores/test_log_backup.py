"""A backup of a log that is written meanwhile, and a log that is put back."""

import signal
import sys
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from cueline.client.log import backup_log, restore_log
from cueline.clock import SystemClock
from cueline.errors import ConfigError, LogUnavailableError, RejectedError
from cueline.events.store import ANY, Write
from cueline.stores.backend import backend_of
from cueline.testing.event_store_example import INBOX, SESSION, begin, empty, fact, whole_log
from cueline.testing.presence_contract import HOST

NOW = datetime(2026, 11, 29, 10, tzinfo=UTC)


@pytest.fixture(params=["sqlite", "postgres"])
def url(request, tmp_path):
    if request.param == "sqlite":
        backend_of(tmp_path / "log.db").migrate()
        return str(tmp_path / "log.db")
    return str(request.getfixturevalue("one_server").empty_log("backup"))


async def events_of(url):
    store = backend_of(url).open(SystemClock(), must_exist=True)
    events = await whole_log(store)
    await store.close()
    return events


async def filled(url, *, events=3):
    store = backend_of(url).open(SystemClock())
    await begin(store, events=events)
    return store


def ask(url, statement):
    with closing(backend_of(url).open_rows()) as rows:
        return rows.ask(statement)


async def test_a_backup_has_each_event_that_was_acknowledged_before_it(url, tmp_path, popen):
    # C38: while a process appends, and is killed in the middle of the copy
    words = [sys.executable, "-m", "tests.stores.postgres_writer", url, "w"]
    writer = popen(words, stdout=-1, text=True)
    acknowledged = {writer.stdout.readline().strip() for _ in range(200)}
    steps = []

    def kill_in_the_middle(step):
        steps.append(step.what)
        if steps.count("streams") == 1:
            writer.send_signal(signal.SIGKILL)

    copied = await backup_log(url, tmp_path / "copy.db", progress=kill_in_the_middle)
    writer.wait()

    copy = str(tmp_path / "copy.db")
    assert () == copied.bad
    assert acknowledged <= {key for (key,) in ask(copy, "SELECT key FROM appends")}
    known, taken = await events_of(url), await events_of(copy)
    assert len(taken) == copied.events
    assert [e.hash for e in known[: len(taken)]] == [e.hash for e in taken]
    assert ask(url, "SELECT log_id FROM meta") == ask(copy, "SELECT log_id FROM meta")


async def test_a_backup_overwrites_nothing_and_leaves_nothing_half_done(url, tmp_path):
    await (await filled(url)).close()
    (kept := tmp_path / "kept.db").write_text("mine")

    with pytest.raises(ConfigError, match=r"kept.db: it exists, .*; name a new file"):
        await backup_log(url, kept)
    with pytest.raises(RuntimeError, match="stop"):
        await backup_log(url, tmp_path / "copy.db", progress=stop)
    assert "mine" == kept.read_text()
    assert [] == list(tmp_path.glob("copy*"))

    (tmp_path / "copy.db.part").write_text("of a backup that was killed")
    await backup_log(url, tmp_path / "copy.db")
    assert ["copy.db"] == [path.name for path in tmp_path.glob("copy*")]


def stop(step):
    raise RuntimeError("stop", step)


async def test_what_was_removed_is_in_no_backup(url, tmp_path):
    store = await filled(url)
    await store.append([Write(SESSION, [fact(b"planted-words" * 400)], 3)], "long")
    await empty(store, SESSION, 4)

    await backup_log(url, tmp_path / "copy.db")

    await store.close()
    assert b"planted-words" not in (tmp_path / "copy.db").read_bytes()


async def test_a_restored_log_goes_on_and_the_former_one_is_kept(url, tmp_path):
    log = tmp_path / "restored.db"
    await (await filled(url)).close()
    await backup_log(url, backup := tmp_path / "copy.db")
    _, nothing = await restore_log(backup, log, now=NOW)
    killed = backend_of(log).open(SystemClock())  # its WAL stays, as after a crash
    await killed.append([Write(INBOX, [fact()], ANY)], "late")

    copied, former = await restore_log(backup, log, now=NOW)

    await killed.close()
    assert (None, 3, str(log)) == (nothing, copied.events, copied.target)
    assert ("restored.db-until-20261129T100000000000", True) == (former.path.name, former.same)
    assert (3, 4) == (len(await events_of(log)), len(await events_of(former.path)))
    store = backend_of(log).open(SystemClock())
    await store.append([Write(SESSION, [fact()], 3)], "more")
    await store.close()
    assert [1, 2, 3, 4] == [event.position for event in await events_of(log)]


async def test_a_restore_tells_whether_it_was_another_log(tmp_path):
    log, backup = tmp_path / "log.db", tmp_path / "copy.db"
    await (await filled(str(tmp_path / "other.db"))).close()
    await backup_log(str(tmp_path / "other.db"), backup)
    await (await filled(log)).close()

    _, other = await restore_log(backup, log, now=NOW)
    log.write_bytes(b"damaged")
    _, damaged = await restore_log(backup, log, now=NOW + timedelta(1))

    assert (False, True) == (other.same, damaged.same)


async def test_a_restore_that_was_stopped_costs_nothing(tmp_path):
    log, backup = str(tmp_path / "log.db"), tmp_path / "copy.db"
    await (await filled(log)).close()
    await backup_log(log, backup)

    with pytest.raises(RuntimeError, match="stop"):
        await restore_log(backup, log, now=NOW, progress=stop)
    backup.write_bytes(backup.read_bytes()[:8192])
    with pytest.raises(LogUnavailableError):
        await restore_log(backup, log, now=NOW)

    assert 3 == len(await events_of(log))
    assert [] == list(tmp_path.glob("log.db-restoring*"))


async def test_a_power_cut_takes_no_name_from_a_backup_or_a_restored_log(tmp_path, monkeypatch):
    log, backup = tmp_path / "logs/log.db", tmp_path / "copies/copy.db"
    log.parent.mkdir()
    backup.parent.mkdir()
    await filled(log)
    synced = {}
    monkeypatch.setattr("cueline.files.os.fsync", lambda file: note_names(file, synced))

    await backup_log(log, backup)
    await restore_log(backup, log, now=NOW)

    assert "copy.db" in synced["copies"]
    assert "log.db" in synced["logs"]


def note_names(file, synced):
    """Note the names in a folder at the moment at which it is synced."""
    folder = Path(f"/proc/self/fd/{file}").readlink()
    synced[folder.name] = {each.name for each in folder.iterdir()}


async def test_a_log_in_use_or_on_a_server_or_itself_is_not_replaced(url, tmp_path):
    log, backup = str(tmp_path / "log.db"), tmp_path / "copy.db"
    await (await filled(url)).close()
    await backup_log(url, backup)
    if url != log:
        with pytest.raises(RejectedError, match="no file here; copy the backup to a new log"):
            await restore_log(backup, url, now=NOW)
        return
    with pytest.raises(ConfigError, match="restored from another; name two logs"):
        await restore_log(log, log, now=NOW)
    board = backend_of(log).open_presence(SystemClock())
    await board.beat(HOST)
    with pytest.raises(RejectedError, match=r"process \d+ on .* \(host\) works on it; end it"):
        await restore_log(backup, log, now=NOW)
    await board.close()
