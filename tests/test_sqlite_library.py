from types import SimpleNamespace

import pytest

from cueline.errors import ConfigError
from cueline.sqlite_library import choose, is_sound, sqlite_library


def library(*version):
    text = ".".join(map(str, version))
    return SimpleNamespace(__name__="sqlite3", sqlite_version=text, sqlite_version_info=version)


@pytest.mark.parametrize(
    ("version", "sound"),
    [
        ((3, 51, 3), True),
        ((3, 53, 4), True),
        ((4, 0, 0), True),
        ((3, 50, 7), True),
        ((3, 44, 6), True),
        ((3, 51, 2), False),
        ((3, 51, 0), False),
        ((3, 50, 6), False),
        ((3, 49, 9), False),
        ((3, 45, 0), False),
        ((3, 44, 5), False),
        ((3, 40, 1), False),
    ],
)
def test_a_sqlite_that_loses_commits_is_not_sound(version, sound):
    assert sound == is_sound(version)


def test_pysqlite3_is_used_where_it_is_installed():
    ours, standard = library(3, 53, 4), library(3, 51, 3)

    assert ours is choose(ours, standard)


def test_the_standard_library_is_used_where_it_is_new_enough():
    standard = library(3, 51, 3)

    assert standard is choose(None, standard)


@pytest.mark.parametrize("ours", [None, library(3, 51, 1)])
def test_a_sqlite_that_is_too_old_is_refused_with_what_to_do(ours):
    standard = library(3, 40, 1) if ours is None else library(3, 53, 4)

    with pytest.raises(ConfigError, match=r"install pysqlite3>=0\.6\.1"):
        choose(ours, standard)


def test_this_process_uses_one_sound_library():
    assert is_sound(sqlite_library().sqlite_version_info)
    assert sqlite_library() is sqlite_library()
