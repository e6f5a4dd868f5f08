"""A log that moves from a file to PostgreSQL, back, or to another file."""

import asyncio
import signal
import sys
from contextlib import closing

import pytest
from typer.testing import CliRunner

from cueline.cli import app
from cueline.client.log import copy_log
from cueline.clock import SystemClock
from cueline.errors import ConfigError, LogUnavailableError, RejectedError
from cueline.events.store import ANY, NO_STREAM, Write
from cueline.stores.backend import backend_of
from cueline.stores.log_copy import PAGE, TABLES, copy_rows
from cueline.testing.event_store_example import (
    FORK,
    INBOX,
    OTHER,
    SESSION,
    all_of,
    begin,
    check_chain,
    fact,
    facts,
    whole_log,
)
from cueline.testing.presence_contract import HOST

DIRECTIONS = ["to_server", "from_server", "between_files"]


@pytest.fixture(params=DIRECTIONS)
def ends(request, one_server, tmp_path):
    """Return the URLs of a log, and of one that is not there yet."""
    return ends_of(request.param, one_server, tmp_path)


def ends_of(direction, server, folder):
    file, other = str(folder / "one.db"), str(folder / "two.db")
    remote = str(server.new_log())
    ends = {"to_server": (file, remote), "from_server": (remote, file)}.get(direction)
    source, target = ends or (file, other)
    backend_of(source).migrate()
    return source, target


async def fill(url):
    """Append what a log can have: owners, keys, blobs, a fork, NUL, emptied payloads."""
    store = backend_of(url).open(SystemClock())
    kept, dropped = [await store.put_blob(content) for content in (b"kept", b"dropped")]
    await begin(store, SESSION, events=3)
    epoch = await store.acquire(SESSION, "host\0a", 0)
    named = [fact(b"a", blobs=(kept,)), fact(b"b", blobs=(dropped,), actor="user:\0\x01")]
    await store.append([Write(SESSION, named, 3, epoch)], None)
    await store.append([Write(FORK, facts(2), 2, after=(SESSION, 2))], "fork\0")
    both = [Write(INBOX, facts(2), ANY), Write(OTHER, facts(1), NO_STREAM)]
    await store.append(both, "both")
    await store.append([Write(INBOX, facts(1), ANY, empties=[(SESSION, 5)])], "clean")
    await store.close()


async def fill_more(url, appends=5):
    store = backend_of(url).open(SystemClock())
    for number in range(appends):
        await store.append([Write(INBOX, facts(PAGE), ANY)], f"more-{number}")
    await store.close()


def rows_of(url):
    with closing(backend_of(url).open_rows()) as rows:
        return {
            table.name: rows.ask(
                f"SELECT {', '.join(table.columns)} FROM {table.name} ORDER BY {table.key[0]}, 2"
            )
            for table in TABLES
        }


# 002-022, C37
async def test_a_copy_has_the_same_rows_and_id_and_goes_on_where_the_log_ended(ends):
    source, target = ends
    await fill(source)

    copied = await copy_log(source, target)

    assert rows_of(source) == rows_of(target)
    assert (11, 4) == (copied.events, copied.streams)
    one, two = (backend_of(url).open(SystemClock()) for url in ends)
    assert one.log_id == two.log_id
    again = await two.append([Write(FORK, facts(2), 2, after=(SESSION, 2))], "fork\0")
    assert (4,) == again.versions  # it is known by its key
    epoch = await two.acquire(SESSION, "b", 1)
    await two.append([Write(SESSION, facts(1), 5, epoch)], None)
    await two.append([Write("session-default/new", facts(1), NO_STREAM)], "new")
    check_chain(await all_of(two, SESSION))
    assert [12, 13] == [event.position for event in (await whole_log(two))[-2:]]
    await one.close()
    await two.close()


@pytest.mark.parametrize("after", ["events 3000", "streams 4", "compared 2000"])
@pytest.mark.parametrize("direction", DIRECTIONS)
async def test_a_copy_that_was_killed_cannot_be_opened_and_goes_on(
    direction, after, one_server, tmp_path, popen
):
    source, target = ends_of(direction, one_server, tmp_path)
    await fill(source)
    await fill_more(source)
    words = [sys.executable, "-m", "tests.stores.copier", source, target, after]
    process = popen(words, stdout=-1, text=True)
    assert f"{after}\n" == process.stdout.readline()
    process.send_signal(signal.SIGKILL)
    process.wait()

    with pytest.raises(LogUnavailableError, match="unfinished copy; run the same `cueline log co"):
        backend_of(target).open(SystemClock(), must_exist=True)
    steps = []
    await copy_log(source, target, progress=steps.append)
    assert int(after.split()[1] if after.startswith("events") else 5011) == steps[0].done
    assert rows_of(source) == rows_of(target)


async def test_what_came_and_what_was_emptied_since_a_copy_follows(ends):
    source, target = ends
    await fill(source)
    await copy_log(source, target)
    store = backend_of(source).open(SystemClock())
    await store.append([Write(INBOX, facts(1), ANY, empties=[(SESSION, 4)])], "clean more")
    await store.close()

    await copy_log(source, target)

    assert rows_of(source) == rows_of(target)
    payloads = [row[14] for row in rows_of(target)["events"]]
    assert [3, 4] == [place for place, payload in enumerate(payloads) if payload is None]
    assert [] == rows_of(target)["blobs"]


async def test_a_log_that_grows_while_it_is_copied_is_told_and_goes_on(ends):
    source, target = ends
    await fill(source)
    grown = []

    def grow(step):
        if step.what == "streams" and not grown:
            grown.append(asyncio.ensure_future(fill_more(source, appends=1)))

    async def copy():
        with (
            closing(backend_of(source).open_rows()) as one,
            closing(backend_of(target).open_rows(to_write=True)) as two,
        ):
            for step in copy_rows(one, two):
                grow(step)
                await asyncio.gather(*grown)

    with pytest.raises(LogUnavailableError, match=r"1000 events came while it was copied; end"):
        await copy()
    await copy_log(source, target)
    assert rows_of(source) == rows_of(target)


async def test_a_target_that_went_on_by_itself_is_refused(ends):
    source, target = ends
    await fill(source)
    await copy_log(source, target)
    for url, key in ((source, "a"), (target, "b")):
        store = backend_of(url).open(SystemClock())
        await store.append([Write(OTHER, [fact(key.encode())], ANY)], key)
        await store.close()

    with pytest.raises(LogUnavailableError, match="it has gone on by itself: its event 12 is not"):
        await copy_log(source, target)


async def test_another_log_is_no_target(ends):
    source, target = ends
    for url in ends:
        backend_of(url).migrate()
        await fill(url)

    with pytest.raises(LogUnavailableError, match=r"it is another log than .*; copy into one with"):
        await copy_log(source, target)


@pytest.mark.parametrize("which", [0, 1], ids=["source", "target"])
async def test_a_log_that_a_process_works_on_is_refused(ends, which):
    for url in ends:
        backend_of(url).migrate()
    board = backend_of(ends[which]).open_presence(SystemClock())
    await board.beat(HOST)

    with pytest.raises(RejectedError, match=r"process \d+ on .* \(host\) works on it; end it"):
        await copy_log(*ends)
    await board.close()


async def test_a_log_is_not_copied_to_itself_nor_from_memory(tmp_path):
    name = str(tmp_path / "one.db")
    with pytest.raises(ConfigError, match="copied to another; name two logs"):
        await copy_log(name, name)
    backend_of(name).migrate()
    (other := tmp_path / "other.db").symlink_to(name)
    with pytest.raises(ConfigError, match="copied to another; name two logs"):
        await copy_log(name, other)
    with pytest.raises(LogUnavailableError, match="a log in memory outlives"):
        await copy_log("memory:x", name)
    with pytest.raises(LogUnavailableError, match="there is no log; name one"):
        await copy_log(tmp_path / "none.db", name)


def test_the_command_tells_what_was_copied_and_what_is_damaged(tmp_path):
    source, target = str(tmp_path / "one.db"), str(tmp_path / "two.db")
    asyncio.run(fill(source))

    done = CliRunner().invoke(app, ["log", "copy", source, target])

    # An emptied event of a session is damage, in the copy as in the log.
    assert 1 == done.exit_code
    assert f"{target}: 11 events in 4 streams copied and checked in" in done.output
    assert f"damaged in {source} too: {SESSION}@5 (position 5): it was emptied" in done.output
