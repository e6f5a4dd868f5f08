"""A log in memory whose clock the tests move, and runtimes on it."""

from contextlib import asynccontextmanager

import pytest

from cueline.client.runtime import Runtime
from cueline.runtime.inline import inline
from tests.scripted import memory_log


@pytest.fixture
def log(tmp_path):
    return memory_log(tmp_path)


@pytest.fixture
def clock(log):
    return log.clock


@pytest.fixture
def runtime(log):
    """Return what opens a runtime as `open_runtime` does, on this log."""

    @asynccontextmanager
    async def opened(told=None):
        def tell(*trouble):
            if told is not None:
                told.append(trouble)

        async with inline(log, scope=set(), on_trouble=tell) as here:
            yield Runtime(log, here)

    return opened
