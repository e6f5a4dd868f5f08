"""What belongs to a log, whatever backend its URL names."""

import asyncio
from contextlib import closing

import pytest

import cueline
from cueline.actors.presence import machine_name
from cueline.clock import SystemClock
from cueline.errors import ConfigError, LogUnavailableError
from cueline.events.log_url import LogUrl
from cueline.runtime.actor_factory import actor_factory_of
from cueline.runtime.open_log import open_log
from cueline.stores import backend
from cueline.stores.backend import backend_of
from cueline.stores.memory_backend import MemoryBackend
from cueline.testing.event_store_example import SESSION, begin
from cueline.testing.presence_contract import HOST
from tests.scripted import HELLO


@pytest.fixture(params=["path", "sqlite", "memory"])
def name(request, tmp_path):
    """Return the name of a log that is not there yet, and is another in each test."""
    names = {
        "path": tmp_path / "log.db",
        "sqlite": f"sqlite:///{tmp_path}/log.db",
        "memory": f"memory:{tmp_path}",
    }
    return names[request.param]


async def test_who_opens_the_same_log_finds_what_is_in_it(name):
    assert not backend_of(name).exists()
    async with open_log(name) as first:
        await begin(first.store, SESSION)
        await first.board.beat(HOST)
    async with open_log(name, must_exist=True) as log:
        found = (await log.store.head(SESSION)).version, [p.role for p in await log.board.all()]
        assert (first.id, LogUrl.of(name)) == (log.id, log.url)

    assert backend_of(name).exists()
    assert (1, ["host"]) == found


async def test_its_read_models_are_filled_from_it(name):
    async with open_log(name) as log:
        await begin(log.store, "inbox-default/one")
        with closing(log.backend.open_views()) as views:
            assert 1 == await views.catch_up(log.store)


async def test_one_who_reads_hears_of_what_another_appends(name):
    async with open_log(name) as log:
        reader = backend_of(name).open(SystemClock(), read_only=True)
        following = asyncio.ensure_future(anext(reader.follow(0)))
        await begin(log.store, SESSION)

        assert SESSION == (await following).stream
        await reader.close()


@pytest.mark.parametrize("wanted", [{"must_exist": True}, {"read_only": True}])
async def test_a_log_that_is_not_there_is_not_made_to_be_looked_at(name, wanted):
    with pytest.raises(LogUnavailableError, match="there is no"):
        backend_of(name).open(SystemClock(), **wanted)

    assert not backend_of(name).exists()


async def test_a_session_runs_on_it(name):
    async with cueline.open_runtime(name, on="inline") as runtime:
        session = await runtime.start(HELLO, "Hello", id="one")
        result = await session.result()

    assert ("completed", "Good evening.") == (result.status, result.text)


async def test_a_log_in_memory_without_a_name_is_another_each_time():
    async with open_log("memory:") as one, open_log("memory:") as other:
        await begin(one.store, SESSION)

        assert 0 == await other.store.last_position()
        assert one.id != other.id


async def test_a_log_in_memory_is_refused_on_ray_with_what_to_do():
    async with open_log("memory:") as log:
        with pytest.raises(LogUnavailableError, match=r"memory:.*run it inline, or name a file"):
            actor_factory_of(log)


@pytest.mark.parametrize(
    ("name", "told"),
    [
        (
            "sqlit:///log.db",
            r"no kind of log has the scheme 'sqlit': did you mean 'sqlite'\? Known are a path",
        ),
        (
            "file:log.db",
            r"file:log.db: no kind .* 'file'; known are a path, sqlite, memory",
        ),
        ("mysql://ada:s3cret@db/x", r"mysql://ada:\*\*\*@db/x: no kind of log"),
    ],
)
def test_a_url_of_no_backend_is_refused_with_those_that_are_known(name, told):
    with pytest.raises(ConfigError, match=told):
        backend_of(name)


@pytest.fixture
def stores(tmp_path, monkeypatch):
    """Return what installs a package with these entry points of stores."""

    def install(text):
        about = tmp_path / "site/stores-1.dist-info"
        about.mkdir(parents=True)
        (about / "METADATA").write_text("Metadata-Version: 2.1\nName: stores\nVersion: 1\n")
        (about / "entry_points.txt").write_text(f"[cueline.stores]\n{text}\n")

    monkeypatch.syspath_prepend(tmp_path / "site")
    backend._installed.cache_clear()
    yield install
    backend._installed.cache_clear()


def test_the_schemes_of_packages_are_among_those_that_are_known(stores):
    stores("zip = json:dumps\nmemory = json:dumps")

    with pytest.raises(ConfigError) as caught:
        backend_of("other:x")

    known = "known are a path, sqlite, memory, postgresql, http, https, zip"
    assert f"the scheme 'other'; {known}; a package" in str(caught.value)
    assert "(entry point group 'cueline.stores')" in str(caught.value)
    assert isinstance(backend_of("memory:x"), MemoryBackend)


@pytest.mark.parametrize(
    ("value", "told"),
    [
        ("nowhere:Backend", "ModuleNotFoundError: No module named 'nowhere'"),
        ("json:Backend", "AttributeError: module 'json' has no attribute 'Backend'"),
    ],
)
def test_a_store_of_a_package_that_cannot_be_loaded_says_why(stores, value, told):
    stores(f"zip = {value}")

    with pytest.raises(ConfigError, match=f"'zip' cannot be loaded from {value}: {told}"):
        backend_of("zip:x")


async def test_the_writer_of_a_file_runs_on_this_machine_in_any_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    async with open_log("log.db") as log:
        factory = actor_factory_of(log)

    assert (machine_name(), str(tmp_path / "log.db")) == (factory.machine, str(factory.url))


def test_the_files_of_a_log_are_known_by_each_name(tmp_path):
    (tmp_path / "link.db").symlink_to("log.db")
    backend = backend_of(tmp_path / "link.db")

    assert {tmp_path / "link.db", tmp_path / "log.db"} == set(backend.files())
    assert backend.owns(tmp_path / "log.db-views.db")
    assert backend.owns(tmp_path / "log.db.presence-wal")
    assert not backend.owns(tmp_path / "log.database")
    assert not backend.owns(tmp_path / "sub" / "log.db")
