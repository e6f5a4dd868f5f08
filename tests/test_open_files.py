import errno
import os
import resource

import pytest

from cueline import files


@pytest.fixture
def spent():
    """Every file that this process may have is open."""
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    lowest = os.open(os.devnull, os.O_RDONLY)
    resource.setrlimit(resource.RLIMIT_NOFILE, (lowest + 1, before[1]))
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, before)
    os.close(lowest)


def test_a_process_that_has_all_its_files_open_knows(spent):
    assert "this process may have" in files.shortage()


def test_looking_whether_files_can_be_opened_opens_none():
    before = os.dup(0)
    os.close(before)

    assert files.shortage() is None

    after = os.dup(0)
    os.close(after)
    assert before == after


@pytest.mark.parametrize("number", [errno.EMFILE, errno.ENFILE])
def test_running_out_of_files_is_known_by_what_led_to_an_error(number):
    error = RuntimeError("another")
    error.__cause__ = OSError(number, "out of files")

    assert files.shortage_of(error) is not None
    assert files.shortage_of(OSError(errno.ENOENT, "another")) is None


def said_at(monkeypatch, limit, hard):
    """Return what is said where so many files may be open, and so many be allowed."""
    monkeypatch.setattr(resource, "getrlimit", lambda _: (limit, hard))
    return files.shortage_of(OSError(errno.EMFILE, "out of files"))


ENDLESS = resource.RLIM_INFINITY


@pytest.mark.parametrize(
    ("limit", "hard", "advised"),
    [
        (64, 4096, 1024),
        (1024, ENDLESS, 2048),
        (20_000, ENDLESS, 40_000),
        (64, 512, 512),
        (20_000, 30_000, 30_000),
    ],
)
def test_more_files_are_advised_than_there_may_be_and_no_more_than_can(
    monkeypatch, limit, hard, advised
):
    said = said_at(monkeypatch, limit, hard)

    assert f"this process may have {limit} (`ulimit -n`); " in said
    assert f"allow more with `ulimit -n {advised}`" in said


def test_who_has_all_the_files_that_can_be_allowed_is_told_who_raises_that(monkeypatch):
    said = said_at(monkeypatch, 1024, 1024)

    assert "this process may have 1024 (`ulimit -n`), which is its hard limit" in said
    assert "root can raise that: `nofile` in /etc/security/limits.conf" in said
    assert "`ulimit -n 2048`" not in said


def test_where_the_machine_has_no_more_files_the_limit_of_a_process_is_not_blamed(monkeypatch):
    def full(*_):
        raise OSError(errno.ENFILE, "out of files")

    monkeypatch.setattr(os, "open", full)

    said = files.shortage()

    assert "all processes of this machine" in said
    assert "ulimit" not in said
