import pickle
from pathlib import Path

import pytest

from cueline.errors import ConfigError
from cueline.events.log_url import LogUrl


@pytest.mark.parametrize(
    ("name", "scheme", "rest"),
    [
        ("cueline.db", "sqlite", "cueline.db"),
        (Path("a/cueline.db"), "sqlite", "a/cueline.db"),
        ("sqlite:///cueline.db", "sqlite", "cueline.db"),
        ("sqlite:////srv/cueline.db", "sqlite", "/srv/cueline.db"),
        ("SQLite:///cueline.db", "sqlite", "cueline.db"),
        ("./log:1.db", "sqlite", "log:1.db"),
        ("2026-11-24T02:00.db", "sqlite", "2026-11-24T02:00.db"),
        ("memory:", "memory", ""),
        ("memory:one", "memory", "one"),
        ("postgresql://db/cueline", "postgresql", "//db/cueline"),
    ],
)
def test_a_log_is_named_by_a_path_or_a_url(name, scheme, rest):
    url = LogUrl.of(name)

    assert (scheme, rest) == (url.scheme, url.rest)


def test_a_path_and_its_url_are_the_same_log():
    assert LogUrl.of("a/log.db") == LogUrl.of("sqlite:///a/log.db") == LogUrl.of(Path("a/log.db"))


@pytest.mark.parametrize("name", ["sqlite:log.db", "sqlite://log.db"])
def test_a_url_of_a_file_without_three_slashes_is_refused_with_how_to_write_it(name):
    with pytest.raises(ConfigError, match=f"{name}: write `sqlite:///` and the path"):
        LogUrl.of(name)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("sqlite:///a/log.db", "a/log.db"),
        ("memory:one", "memory:one"),
        ("postgresql://ada:s3cr@et@db/x", "postgresql://ada:***@db/x"),
        ("postgresql://ada@db/x", "postgresql://ada@db/x"),
        ("postgresql://db:5432/x?password=s3cret&a=b", "postgresql://db:5432/x?password=***&a=b"),
    ],
)
def test_its_text_has_no_password(name, text):
    url = LogUrl.of(name)

    assert (text, f"LogUrl({text!r})") == (str(url), repr(url))


def test_only_a_file_is_named_from_the_working_directory(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)

    assert str(tmp_path / "log.db") == str(LogUrl.of("log.db").absolute())
    assert "/srv/log.db" == str(LogUrl.of("/srv/log.db").absolute())
    assert LogUrl.of("memory:one") == LogUrl.of("memory:one").absolute()


def test_it_goes_to_another_process():
    url = LogUrl.of("postgresql://db/x")

    assert url == pickle.loads(pickle.dumps(url))


def test_a_name_of_another_type_is_refused_with_what_a_log_is_called():
    with pytest.raises(ConfigError, match="3: a log is a path or a URL"):
        LogUrl.of(3)
