"""`Reader.sql`: what a query may not do, in both kinds of log."""

from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from cueline.client.open_reader import open_reader
from cueline.client.reader import Reader
from cueline.deciders.person import Person
from cueline.errors import ConfigError, ForbiddenError
from cueline.projections import sql_query
from cueline.projections.relations import RELATIONS
from cueline.projections.views import Views
from tests.audit_example import fill

PAGE = (Path(__file__).parents[2] / "docs/reference/read-models.md").read_text()
ENDLESS = "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c) SELECT count(*) FROM c"
WRITES = (
    "DELETE FROM events",
    "UPDATE sessions SET goal = ''",
    "CREATE TABLE more (x INTEGER)",
    "DROP VIEW turns",
    "SELECT 1; DELETE FROM events",
    "WITH gone AS (DELETE FROM events RETURNING *) SELECT * FROM gone",
    "",
    "nonsense",
)
OF_SQLITE = (
    "PRAGMA journal_mode",
    "ATTACH 'other.db' AS other",
    "SELECT load_extension('x')",
    "SELECT * FROM pragma_table_info('events')",
    "VACUUM INTO 'other.db'",
    "BEGIN IMMEDIATE",
)
OF_POSTGRES = (
    "SELECT * FROM pg_catalog.pg_authid",
    "SELECT name FROM {log}.streams",
    "SELECT * FROM (SELECT payload FROM {log}.events) AS hidden",
    "SELECT pg_read_file('/etc/passwd')",
    "SELECT pg_terminate_backend(1)",
    "SELECT set_config('transaction_read_only', 'off', true)",
    "SELECT query_to_xml('SELECT payload FROM {log}.events', true, true, '')",
    "SELECT lo_import('/etc/passwd')",
    "COPY (SELECT 1) TO PROGRAM 'true'",
    "SELECT {log}.append(NULL)",
    "SELECT nextval('x')",
    "SELECT * FROM events FOR UPDATE",
)


@pytest.fixture(params=["sqlite", "postgres"])
async def reader(request, tmp_path):
    server = request.param == "postgres" and request.getfixturevalue("one_server")
    url = str(server.empty_log("sql") if server else tmp_path / "log.db")
    await fill(url)
    async with open_reader(url) as opened:
        opened.log_name = "sql" if server else ""
        yield opened


async def test_a_query_reads_and_does_nothing_else(reader):
    before = await reader.sql("SELECT count(*) FROM events")
    refused = [*WRITES, *(OF_POSTGRES if reader.log_name else OF_SQLITE)]
    for query in refused:
        with pytest.raises(ConfigError, match=r"^sql: "):
            await reader.sql(query.format(log=reader.log_name))

    assert before == await reader.sql("SELECT count(*) FROM events")


async def test_a_long_query_is_ended(reader, monkeypatch):
    for module in ("cueline.projections.sql_query", "cueline.stores.postgres.sql_query"):
        monkeypatch.setattr(f"{module}.SECONDS", 0.2)

    with pytest.raises(ConfigError, match=r"took more than 0\.2 s"):
        await reader.sql(ENDLESS)


async def test_a_refusal_says_what_can_be_asked(reader):
    asked = {
        "SELECT * FROM event": r"no table 'event': did you mean 'events'\? The tables are events",
        "SELECT nope FROM events": "nope.*; `SELECT [*] FROM TABLE LIMIT 1` shows the columns",
        "SELECT 1; SELECT 2": "not one query that only reads .*; ask one SELECT",
    }
    for query, reason in asked.items():
        with pytest.raises(ConfigError, match=reason):
            await reader.sql(query)


async def test_columns_of_one_name_are_told_apart(reader):
    found = await reader.sql("SELECT 1 AS id, 2 AS id, 3 AS id_2, 4 AS id")

    assert (("id", "id_2", "id_2_2", "id_3"), ((1, 2, 3, 4),)) == (found.columns, found.rows)


async def test_a_call_that_does_not_end_is_ended(tmp_path, monkeypatch):
    monkeypatch.setattr("cueline.projections.sql_query.SECONDS", 0.2)
    monkeypatch.setattr("cueline.projections.sql_query._START_SECONDS", 1.0)
    long = "WITH t(x) AS (SELECT hex(zeroblob(9000000))) SELECT instr(x, substr(x, 9000000) || 'a')"
    refused = pytest.raises(ConfigError, match="took more than")

    with closing(Views(tmp_path / "views.db")) as views, refused:
        await views.query(f"{long} FROM t", 1)


async def test_an_answer_does_not_fill_the_memory(reader):
    far = "repeat('a', 1000000)" if reader.log_name else "hex(zeroblob(500000))"
    with pytest.raises(ConfigError, match="longer than 10 MB"):
        await reader.sql(f"SELECT position, {far} FROM events")
    if not reader.log_name:
        with pytest.raises(ConfigError, match="memory"):
            await reader.sql("SELECT hex(zeroblob(400000000))")

    assert 1 == len((await reader.sql("SELECT 1", limit=10**20)).rows)


async def test_a_person_of_one_tenant_is_refused(reader):
    own = Reader(replace(reader.log, person=Person("ada", "acme")))

    with pytest.raises(ForbiddenError):
        await own.sql("SELECT * FROM events")


async def test_each_table_and_view_has_the_documented_columns(reader):
    for name in RELATIONS:
        found = await reader.sql(f"SELECT * FROM {name}", limit=2)

        assert found.rows, name
        for column in found.columns:
            assert f"`{column}`" in PAGE or column.endswith("_tokens"), (name, column)


async def test_the_rows_end_at_the_limit(reader):
    found = await reader.sql("SELECT position FROM events ORDER BY position", limit=2)

    assert (("position",), ((1,), (2,)), True) == (found.columns, found.rows, found.more)
    assert sql_query.SECONDS == 10
