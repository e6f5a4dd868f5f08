"""What goes wrong around a log in PostgreSQL, and that nothing is lost, doubled or missed."""

import asyncio
import itertools
import signal
import subprocess
import sys
import threading
from collections import Counter
from contextlib import asynccontextmanager, suppress
from datetime import timedelta

import psycopg
import pytest

from cueline.actors.presence import presence_of
from cueline.clock import SystemClock
from cueline.errors import (
    FencedError,
    LogLostError,
    LogUnavailableError,
    UnknownOutcomeError,
)
from cueline.events.store import ANY, NO_STREAM, Write
from cueline.stores.backend import backend_of
from cueline.stores.postgres.address import address_of
from cueline.stores.postgres.connections import connected
from cueline.stores.postgres.migration import migrate
from cueline.stores.postgres.store import PostgresStore
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
from tests.postgres_server import PostgresServer
from tests.stores.conftest import LANES


@pytest.fixture
def own_server():
    """Return a server that a test may stop."""
    if not LANES:
        pytest.skip("no PostgreSQL")
    server = PostgresServer(next(iter(LANES.values())))
    yield server
    server.close()


@pytest.fixture
async def store(postgres_url):
    store = backend_of(postgres_url).open(SystemClock())
    yield store
    await store.close()


async def appends(store, count, *, stream=INBOX):
    """Append one after another, and return the results."""
    return [
        await store.append([Write(stream, [fact(b"%d" % n)], ANY)], key=f"k{n}")
        for n in range(count)
    ]


async def following(store, until, seen):
    """Follow the log up to that position."""
    async for event in store.follow(0):
        seen.append(event.position)
        if event.position == until:
            return


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGQUIT], ids=["stopped", "crashed"])
async def test_appends_and_followers_outlive_a_restart_of_the_server(own_server, how):
    url = own_server.empty_log()
    store, other = (backend_of(url).open(SystemClock()) for _ in "ab")
    seen = []
    follows = asyncio.ensure_future(following(other, 40, seen))
    await appends(store, 10)

    await asyncio.to_thread(own_server.stop, how)
    going_on = asyncio.ensure_future(appends(store, 40))
    await asyncio.to_thread(own_server.start)

    assert list(range(1, 41)) == [appended.position for appended in await going_on]
    await follows
    assert list(range(1, 41)) == seen == positions(await whole_log(store))
    for each in (store, other):
        await each.close()


async def test_a_process_stays_on_the_board_when_the_server_crashes(own_server):
    # I5: of a runner that is not there any more, the calls count as ended.
    board = backend_of(own_server.empty_log()).open_presence(SystemClock())
    frozen = presence_of("runner")
    await board.beat(frozen)

    await asyncio.to_thread(own_server.kill)
    await asyncio.to_thread(own_server.start)

    assert [frozen.incarnation] == [each.incarnation for each in await board.all()]
    await board.close()


async def test_appends_outlive_that_all_connections_are_ended_again_and_again(server):
    store = backend_of(server.empty_log()).open(SystemClock())
    over = threading.Event()

    def end_them():
        while not over.wait(0.1):
            server.terminate_all()

    ending = threading.Thread(target=end_them)
    ending.start()
    try:
        results = await asyncio.gather(
            *(appends(store, 8, stream=f"inbox-default/{name}") for name in "abcdefgh")
        )
    finally:
        over.set()
        ending.join()

    assert list(range(1, 65)) == sorted(each.position for part in results for each in part)
    assert list(range(1, 65)) == positions(await whole_log(store))
    await store.close()


@asynccontextmanager
async def deaf_link(server, folder):
    """Forward to the server through another socket; once told, swallow the next answer."""
    told = asyncio.Event()
    links = set()

    async def forward(reader, writer, *, answers):
        while data := await reader.read(65536):
            if answers and told.is_set():
                told.clear()
                return
            writer.write(data)

    async def link(reader, writer):
        links.add(asyncio.current_task())
        there, back = await asyncio.open_unix_connection(f"{server.folder}/.s.PGSQL.5432")
        ways = [forward(reader, back, answers=False), forward(there, writer, answers=True)]
        ways = [asyncio.ensure_future(way) for way in ways]
        await asyncio.wait(ways, return_when="FIRST_COMPLETED")
        for way in ways:
            way.cancel()
        await asyncio.gather(*ways, return_exceptions=True)
        for each in (back, writer):
            each.close()
            await asyncio.gather(each.wait_closed(), return_exceptions=True)

    listening = await asyncio.start_unix_server(link, f"{folder}/.s.PGSQL.5432")
    yield told
    listening.close()
    await asyncio.gather(*links, return_exceptions=True)


async def test_an_append_whose_answer_is_lost_is_found_by_its_key(one_server, tmp_path):
    name = str(one_server.empty_log()).replace(str(one_server.folder), str(tmp_path))
    async with deaf_link(one_server, tmp_path) as deaf:
        store = PostgresStore(
            address_of(backend_of(name).url), await id_of(one_server), SystemClock()
        )
        await begin(store, OTHER)
        deaf.set()
        keyed = await store.append([Write(INBOX, facts(2), ANY)], key="k")
        assert not deaf.is_set()
        deaf.set()
        epoch = await store.acquire(SESSION, "host-a", 0)
        assert not deaf.is_set()
        deaf.set()
        owned = await store.append([Write(SESSION, facts(1), NO_STREAM, epoch)], None)
        assert not deaf.is_set()

        assert (1, 3, 4) == (epoch, keyed.position, owned.position)
        assert [1, 2, 3, 4] == positions(await whole_log(store))
        await store.close()


async def id_of(server):
    return await asyncio.to_thread(
        lambda: backend_of(server.url("emptied")).open(SystemClock()).log_id
    )


async def test_acquiring_again_what_one_has_is_refused(store):
    await store.acquire(SESSION, "host-a", 0)

    with pytest.raises(FencedError):
        await store.acquire(SESSION, "host-a", 0)


async def test_a_server_that_stays_away_is_told_to_every_caller(own_server):
    url = own_server.empty_log()
    log_id = backend_of(url).open(SystemClock()).log_id
    store = PostgresStore(address_of(url), log_id, SystemClock(), patience_seconds=0.3)
    await begin(store, SESSION)
    follows = asyncio.ensure_future(following(store, 9, []))
    await asyncio.to_thread(own_server.stop)

    with pytest.raises((UnknownOutcomeError, LogUnavailableError)):
        await begin(store, OTHER)
    with pytest.raises(LogUnavailableError):
        await begin(store, OTHER)
    with pytest.raises(LogUnavailableError):
        await whole_log(store)
    with pytest.raises(LogUnavailableError):
        await follows

    await store.close()
    await asyncio.to_thread(own_server.start)


async def test_an_append_that_cannot_be_sent_costs_its_neighbours_nothing(store):
    too_large = [Write(INBOX, [fact(occurred_us=2**70)], ANY)]

    refused, appended = await asyncio.gather(
        store.append(too_large, "k"), begin(store), return_exceptions=True
    )

    assert isinstance(refused, Exception)
    assert 1 == appended.position


async def test_a_log_that_was_replaced_takes_no_append_of_another(one_server):
    url = one_server.new_log()
    migrate(address_of(url))
    store = backend_of(url).open(SystemClock())
    await begin(store)
    with connected(address_of(url)) as db:
        db.execute("UPDATE meta SET log_id = 'another'")

    with pytest.raises(LogLostError, match="replaced by another log"):
        await begin(store, OTHER)
    with connected(address_of(url)) as db:
        db.execute(f"DROP SCHEMA {address_of(url).schema} CASCADE")
    with pytest.raises(LogLostError, match="was removed"):
        await begin(store, OTHER)
    await store.close()


async def test_the_time_is_the_servers_and_never_decreases(store):
    first, second = await appends(store, 2)

    assert 0 < first.recorded_us <= second.recorded_us


async def test_a_repeat_beside_a_new_append_keeps_both_times(postgres_url):
    clock = SetClock()
    store = backend_of(postgres_url).open(clock)
    first = await begin(store)
    clock.move(timedelta(seconds=5))

    again, new = await asyncio.gather(begin(store), begin(store, OTHER))

    assert first == again
    assert first.recorded_us < new.recorded_us
    await store.close()


async def test_damage_beside_the_events_is_found(postgres_url, store):
    await begin(store, SESSION, events=2)
    assert [] == await store.faults()

    with connected(address_of(postgres_url)) as db:
        db.execute("UPDATE streams SET version = 1")

    assert ["its last event is 2, 1 were appended"] == [
        each.reason for each in await store.faults()
    ]


async def test_who_tails_misses_nothing_while_writers_are_slow_aborted_and_killed(server):
    url = server.empty_log()
    store = backend_of(url).open(SystemClock())
    writers = [start_writer(url, name) for name in ("one", "two", "killed")]
    over = threading.Event()
    seen, acknowledged, slow = [], [], []
    beside = threading.Thread(target=append_slowly, args=(server, url, over, slow))
    beside.start()
    try:
        async for event in store.follow(0):
            seen.append(event)
            if event.position == 600:
                writers[2].kill()
            if event.position >= 1_500:
                break
        for writer in writers:
            writer.terminate()
        for writer in writers:
            said = (await asyncio.to_thread(writer.communicate))[0]
            acknowledged += said.split("\n")[:-1]
    finally:
        over.set()
        beside.join()

    seen += [event async for event in store.read_all(seen[-1].position)]
    assert list(range(1, len(seen) + 1)) == positions(seen)
    # The server may end an append of a writer that is gone, so more can follow.
    assert positions(seen) == positions(await whole_log(store))[: len(seen)]
    keys = {event.payload.decode() for event in seen}
    assert set() == set(acknowledged) - keys
    assert {("appended", end) for end in ("COMMIT", "ROLLBACK", CUT_OFF)} == set(slow)
    assert "COMMIT" in keys
    assert set() == keys & {"ROLLBA", "SELECT"}
    counts = Counter(event.payload for event in seen if event.stream.endswith(("one", "shared")))
    assert {4, 2} >= set(counts.values())
    for stream in {event.stream for event in seen} - {"inbox-default/slow"}:
        check_chain(await all_of(store, stream))
    await store.close()


def start_writer(url, name):
    command = [sys.executable, "-m", "tests.stores.postgres_writer", str(url), name]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)


def append_slowly(server, url, over, ends):
    """Append in transactions that take their time, and are then committed, undone or cut off."""
    place = address_of(url)
    for number, end in enumerate(itertools.cycle(["COMMIT", "ROLLBACK", CUT_OFF])):
        if over.is_set():
            return
        with psycopg.connect(place.conninfo) as db, suppress(psycopg.errors.AdminShutdown):
            db.execute(f"SET search_path = {place.schema}")
            status = db.execute(SLOW % (number, end[:6])).fetchone()[0]
            db.execute("SELECT pg_sleep(0.01)")
            ends.append((status, end))
            db.execute(end)


CUT_OFF = "SELECT pg_terminate_backend(pg_backend_pid())"
SLOW = """
SELECT * FROM append(
    (SELECT log_id FROM meta), NULL, '{inbox-default/slow}', '{inbox}', '{k%s}', '{1}', '{1}',
    '{1}', '{-1}', '{NULL}', '{NULL}', '{NULL}', '{1}', '{1}', '{0}', '{T}', '{1}', '{%s}', '{1}',
    '{user}', '{NULL}', '{NULL}', '{NULL}', '{0}', '{h}', '{s}', '{p}', '{}', '{}', '{}', '{}',
    '{}'
)
"""
