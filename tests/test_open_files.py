import errno
import os
import resource

import pytest

from cueline import open_files


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
    assert open_files.are_spent()


def test_looking_whether_files_can_be_opened_opens_none():
    before = os.dup(0)
    os.close(before)

    assert not open_files.are_spent()

    after = os.dup(0)
    os.close(after)
    assert before == after


@pytest.mark.parametrize("number", [errno.EMFILE, errno.ENFILE])
def test_running_out_of_files_is_known_by_what_led_to_an_error(number):
    error = RuntimeError("another")
    error.__cause__ = OSError(number, "out of files")

    assert open_files.ran_out(error)
    assert not open_files.ran_out(OSError(errno.ENOENT, "another"))
