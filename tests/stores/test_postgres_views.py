"""The read models of a log in PostgreSQL: one for all machines."""

import asyncio
import signal
from contextlib import closing
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest

from cueline.client.open_read_models import read_models
from cueline.clock import SystemClock
from cueline.deciders.person import Person
from cueline.errors import LogUnavailableError
from cueline.events.agent import AgentSpec
from cueline.events.inbox import StartAsked
from cueline.events.store import ANY, Write
from cueline.projections.session import list_sessions
from cueline.projections.views import VERSION
from cueline.projections.words import JOIN, MATCH, query_of
from cueline.runtime.open_log import open_log
from cueline.stores.backend import backend_of
from cueline.stores.postgres.address import address_of
from cueline.stores.postgres.connections import connected
from cueline.stores.postgres.views import PostgresViews
from cueline.testing.event_store_example import INBOX, fact
from tests.postgres_server import PostgresServer
from tests.stores.conftest import LANES

AGENT = AgentSpec(name="editor", provider="scripted", model="m1")
ASKED = StartAsked(
    agent=AGENT, goal="Tidy up", labels={"team": "docs"}, asked_at=datetime(2026, 1, 1, tzinfo=UTC)
)


@pytest.fixture
async def log(server):
    async with open_log(str(server.empty_log())) as log:
        yield log


def ids(views, **asked):
    return [row.id for row in list_sessions(views.db, **asked)]


async def test_what_one_machine_has_projected_another_reads(log):
    await log.ask_start("one", ASKED)
    with closing(log.backend.open_views()) as here, closing(log.backend.open_views()) as there:
        assert 0 == there.checkpoint.position
        end = await here.catch_up(log.store)

        assert isinstance(here, PostgresViews)
        assert (end, ["one"]) == (there.checkpoint.position, ids(there))
        assert ["one"] == ids(there, labels={"team": "docs"})
        assert [] == ids(there, labels={"team": "sales"})


# C46
async def test_a_person_of_a_tenant_sees_its_rows_only(log):
    acme = replace(log, person=Person("ada", "ac_me"))
    await log.ask_start("one", ASKED)
    await acme.ask_start("one", ASKED)
    async with read_models(log) as whole, read_models(acme) as own:
        rows = own.db.execute("SELECT stream FROM events").fetchall()

        assert ["ac_me/one", "one"] == sorted(each.id for each in list_sessions(whole.db))
        assert ["ac_me/one"] == [each.id for each in list_sessions(own.db)]
        assert [("inbox-ac_me/one",)] == [tuple(each) for each in rows]


async def test_processes_that_catch_up_at_once_project_each_event_once(log):
    for number in range(20):
        await log.ask_start(f"s{number}", ASKED)
    views = [log.backend.open_views() for _ in range(4)]

    ends = await asyncio.gather(*(each.catch_up(log.store, batch=3) for each in views))

    assert {await log.store.last_position()} == set(ends)
    [(events,)] = views[0].db.execute("SELECT count(*) FROM events")
    assert (ends[0], 20) == (events, len(ids(views[0])))
    for each in views:
        each.close()


async def test_they_are_filled_again_after_a_crash_of_the_server():
    if not LANES:
        pytest.skip("no PostgreSQL")
    server = PostgresServer(next(iter(LANES.values())))
    try:
        async with open_log(str(server.empty_log())) as log:
            await log.ask_start("one", ASKED)
            with closing(log.backend.open_views()) as views:
                end = await views.catch_up(log.store)
                await asyncio.to_thread(server.stop, signal.SIGQUIT)
                with pytest.raises(LogUnavailableError):
                    ids(views)
                await asyncio.to_thread(server.start)

                assert end == await views.catch_up(log.store)
                assert ["one"] == ids(views)
    finally:
        server.close()


async def test_they_go_on_after_the_server_refused_the_beginning_of_a_transaction(one_server):
    url = one_server.new_log()
    backend_of(url).migrate()
    async with open_log(str(url)) as log:
        await log.ask_start("one", ASKED)
        with closing(log.backend.open_views()) as views:
            views.db.execute("DELETE FROM checkpoint")
            views.db.execute("ALTER TABLE checkpoint ADD CONSTRAINT none CHECK (position > 0)")
            with pytest.raises(LogUnavailableError):
                await views.catch_up(log.store)
            views.db.execute("ALTER TABLE checkpoint DROP CONSTRAINT none")

            await views.catch_up(log.store)
            assert ["one"] == ids(views)


async def test_they_are_filled_anew_for_another_log(log):
    await log.ask_start("one", ASKED)
    with closing(log.backend.open_views()) as views:
        await views.catch_up(log.store)
        with connected(address_of(log.url)) as db:
            db.execute("SET session_replication_role = replica")
            for table in ("events", "streams", "appends"):
                db.execute(f"DELETE FROM {table}")
        other = backend_of(log.url).open(SystemClock())
        await other.append([Write(INBOX, [fact()], ANY)], "k")
        await other.close()

        assert 1 == await views.catch_up(log.store)
        assert [] == [each for each in ids(views) if each == "one"]


@pytest.mark.parametrize("page", ["guides/stores.md", "reference/read-models.md"])
def test_the_pages_name_their_schema(page):
    text = (Path(__file__).parents[2] / "docs" / page).read_text()

    assert f"`NAME_views{VERSION}`" in text


async def test_the_index_of_words_is_asked_whatever_the_planner_thinks_of_a_word(log):
    asked = f"EXPLAIN SELECT position FROM events {JOIN} WHERE {MATCH} ORDER BY position LIMIT 9"
    with closing(log.backend.open_views()) as views:
        await views.catch_up(log.store)
        views.db.execute("INSERT INTO words SELECT n, n FROM generate_series(1, 2000) AS n")
        # The planner takes it for a million rows that nobody has looked at.
        views.db.execute(
            "UPDATE pg_class SET relpages = 1, reltuples = 100000 WHERE oid = 'words'::regclass"
        )
        plan = views.db.execute(asked, [query_of("rare")]).fetchall()

    assert "Bitmap Index Scan on idx_words" in str(plan)
