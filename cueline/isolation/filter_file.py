"""The filter of system calls as an open file, for bwrap to read."""

import os
from collections.abc import Iterator
from contextlib import contextmanager

from cueline.isolation.seccomp import program


@contextmanager
def filter_file() -> Iterator[int]:
    """Open the filter for one start of bwrap; yield the descriptor, which a child can inherit."""
    descriptor = os.memfd_create("filter")
    try:
        os.write(descriptor, program())
        os.lseek(descriptor, 0, os.SEEK_SET)
        yield descriptor
    finally:
        os.close(descriptor)
