"""Who may do what to a log in PostgreSQL, and what its URL says."""

from dataclasses import replace

import psycopg
import pytest

from cueline.actors.presence import presence_of
from cueline.clock import SystemClock
from cueline.errors import ConfigError, LogFormatError, LogUnavailableError
from cueline.events.log_url import LogUrl
from cueline.events.snapshot import SnapshotRow
from cueline.events.store import ANY, Write
from cueline.runtime.up_record import UpRecord, find_up
from cueline.stores.backend import backend_of
from cueline.stores.postgres.address import address_of
from cueline.stores.postgres.connections import connected
from cueline.stores.postgres.migration import migrate
from cueline.testing.event_store_example import INBOX, SESSION, SetClock, begin, facts, whole_log
from cueline.testing.presence_contract import HOST

WRITES = [
    "UPDATE events SET actor = 'eve'",
    "UPDATE events SET payload = NULL, salt = NULL",
    "DELETE FROM events",
    "TRUNCATE events",
    "UPDATE streams SET version = 0",
    "DELETE FROM streams",
    "DELETE FROM appends",
    "DELETE FROM blobs",
    "INSERT INTO events SELECT * FROM events",
    "INSERT INTO streams (name, category, head_hash) VALUES ('a', 'b', sha256('c'))",
    "DROP TABLE events",
    "SELECT make_stream('a', 'b')",
]
BY_OWNER = [
    "UPDATE events SET actor = 'eve'",
    "UPDATE events SET payload = 'x'",
    "DELETE FROM events",
    "TRUNCATE events",
    "UPDATE appends SET key = 'x'",
    "DELETE FROM streams",
    "TRUNCATE streams CASCADE",
    "UPDATE streams SET name = 'x'",
    "UPDATE blobs SET content = 'x'",
]


@pytest.fixture
def roles(server):
    """Return the URLs of a writer and a reader of a log that is empty."""
    url = server.empty_log()
    with connected(address_of(url)) as db:
        for role in ("writer", "reader"):
            if not db.execute("SELECT 1 FROM pg_roles WHERE rolname = %s", (role,)).fetchone():
                db.execute(f"CREATE ROLE {role} LOGIN")
    migrate(address_of(url), writers=["writer"], readers=["reader"])
    return [LogUrl.of(server.url("emptied", user=role)) for role in ("writer", "reader")]


async def test_a_writer_appends_and_can_neither_change_nor_delete(roles):
    writer, _ = roles
    store = backend_of(writer).open(SystemClock())
    blob = await store.put_blob(b"content")
    await begin(store, SESSION, events=2)
    epoch = await store.acquire(SESSION, "host-a", 0)
    empties = [(SESSION, 1)]
    await store.append([Write(SESSION, facts(1), 2, epoch, empties=empties)], None)

    with psycopg.connect(address_of(writer).conninfo, autocommit=True) as db:
        db.execute(f"SET search_path = {address_of(writer).schema}")
        for statement in WRITES:
            with pytest.raises(psycopg.errors.InsufficientPrivilege):
                db.execute(statement)

    assert [None, b"1", b"0"] == [event.payload for event in await whole_log(store)]
    assert b"content" == await store.get_blob(blob)
    await store.close()


async def test_a_writer_keeps_what_is_beside_the_log(roles):
    writer, _ = roles
    board = backend_of(writer).open_presence(SystemClock())
    await board.beat(HOST)
    snapshots = backend_of(writer).open_snapshots()
    await snapshots.keep(SESSION, SnapshotRow(1, b"s", b"c", 0, [SESSION]))
    backend_of(writer).write_up("{}")

    assert [HOST.pid] == [each.pid for each in await board.all()]
    assert b"s" == await snapshots.newest(SESSION)
    assert "{}" == backend_of(writer).read_up()
    backend_of(writer).remove_up()
    assert backend_of(writer).read_up() is None
    await snapshots.close()
    await board.close()


async def test_a_reader_is_not_shown_the_token_by_which_one_hears_what_models_say(roles):
    _, reader = roles
    boards = [backend_of(url).open_presence(SystemClock()) for url in roles]
    await boards[0].beat(replace(HOST, token="s3cret"))

    assert ["s3cret", ""] == [each.token for board in boards for each in await board.all()]
    with (
        psycopg.connect(address_of(reader).conninfo) as db,
        pytest.raises(psycopg.errors.InsufficientPrivilege),
    ):
        db.execute(f"SELECT token FROM {address_of(reader).beside}.presence")
    for board in boards:
        await board.close()


async def test_the_up_of_another_machine_is_found_where_the_log_is_shared(roles):
    writer, _ = roles
    keeper = replace(presence_of("up"), machine="another", boot_id="another")
    record = UpRecord(address="a:1", namespace="n", version="1", keeper=keeper)

    record.write(writer)

    assert record == find_up(writer)


async def test_a_reader_reads_and_is_told_that_it_may_not_append(roles):
    writer, reader = roles
    store = backend_of(writer).open(SystemClock())
    await begin(store, SESSION)
    await store.close()
    store = backend_of(reader).open(SystemClock())

    assert 1 == len(await whole_log(store))
    with pytest.raises(LogUnavailableError, match=r"may not; `cueline log migrate --writer"):
        await store.append([Write(INBOX, facts(1), ANY)], "k")
    await store.close()


async def test_even_the_owner_of_the_tables_changes_no_event_by_mistake(postgres_url):
    store = backend_of(postgres_url).open(SetClock())
    await begin(store, SESSION, events=2)
    await store.put_blob(b"content")
    await store.close()

    with connected(address_of(postgres_url)) as db:
        for statement in BY_OWNER:
            with pytest.raises(psycopg.errors.RestrictViolation):
                db.execute(statement)


def test_opening_makes_no_log_and_says_what_does(one_server):
    url = one_server.new_log()

    assert not backend_of(url).exists()
    with pytest.raises(LogUnavailableError, match="no such log; `cueline log migrate --log"):
        backend_of(url).open(SystemClock())
    assert not backend_of(url).exists()


def test_migrating_twice_makes_one_log(one_server):
    place = address_of(one_server.new_log())

    assert [True, False] == [migrate(place), migrate(place)]


def test_a_log_of_a_newer_format_is_refused(one_server):
    url = one_server.new_log()
    migrate(address_of(url))
    with connected(address_of(url)) as db:
        db.execute("UPDATE meta SET format = 99")

    for use in (lambda: backend_of(url).open(SystemClock()), lambda: migrate(address_of(url))):
        with pytest.raises(LogFormatError, match="upgrade cueline"):
            use()


def test_two_logs_of_one_database_are_apart(one_server):
    urls = [one_server.new_log(), one_server.new_log()]
    for url in urls:
        migrate(address_of(url))

    assert 2 == len({backend_of(url).open(SystemClock()).log_id for url in urls})


@pytest.mark.parametrize(
    ("url", "told"),
    [
        ("postgresql://ada:s3cret@h/d", r"postgresql://ada:\*\*\*@h/d: leave out the password"),
        ("postgresql://h/d?password=s3cret", r"password=\*\*\*: leave out .*PGPASSWORD"),
        ("postgresql:h/d", "write `postgresql://HOST/DATABASE`"),
        ("postgresql://h/d?schema=A-b", "a schema is named by a-z, 0-9 and _, unlike 'A-b'"),
        ("postgresql://h/d?nope=1", "invalid URI query parameter"),
        ("postgres://h/d", r"did you mean 'postgresql'\?"),
    ],
)
def test_a_url_that_is_wrong_says_what_to_write(url, told):
    with pytest.raises(ConfigError, match=told) as caught:
        backend_of(url)

    assert "s3cret" not in str(caught.value)


@pytest.mark.parametrize(
    ("url", "schema"),
    [
        ("postgresql://h/d", "cueline"),
        ("postgresql://h/d?schema=other", "other"),
        ("postgresql://h/d?schema=other&sslmode=require", "other"),
        ("postgresql://h/d?sslmode=require&schema=other", "other"),
    ],
)
def test_a_url_names_database_and_schema(url, schema):
    place = address_of(LogUrl.of(url))

    assert schema == place.schema
    assert "host=h" in place.conninfo
    assert ("sslmode=require" in place.conninfo) == ("sslmode" in url)


def test_a_server_that_is_not_there_is_an_error_with_its_reason(tmp_path):
    with pytest.raises(LogUnavailableError, match="No such file or directory"):
        backend_of(f"postgresql:///d?host={tmp_path}").open(SystemClock())


def test_without_psycopg_the_extra_is_named(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "psycopg", None)
    for module in [m for m in __import__("sys").modules if m.startswith("cueline.stores.postgres")]:
        monkeypatch.delitem(__import__("sys").modules, module)
    monkeypatch.setattr("cueline.stores.backend._loaded", {})

    with pytest.raises(ConfigError, match=r"needs psycopg: `pip install 'cueline\[postgres\]'`"):
        backend_of("postgresql://h/d")


async def test_what_is_on_the_machine_is_in_folders_of_the_user(roles, tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    backend = backend_of(roles[0])
    store = backend.open(SystemClock(), must_exist=True)
    await begin(store, INBOX)

    views = backend_of(roles[1]).open_views()  # a reader's own: it may not fill the shared ones
    assert 1 == await views.catch_up(store)
    assert tmp_path / "cache/cueline" / f"{store.log_id}-views.db" == views.path
    assert tmp_path / "state/cueline" / f"{store.log_id}-up.log" == backend.up_output()
    assert not backend.files()
    assert not backend.owns(views.path)
    views.close()
    await store.close()


async def test_a_role_is_told_what_it_may_do(roles):
    said = [backend_of(url).describe() for url in roles]

    assert ["role writer appends only", "role reader reads only"] == [
        each.partition("the ")[2] for each in said
    ]
