"""A log in memory whose clock the tests move, and runtimes on it."""

from contextlib import asynccontextmanager

import pytest

from cueline.inline import inline
from cueline.runtime import LocalContext, Runtime, Troubles
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
        scope, troubles = (
            set(),
            Troubles(lambda *trouble: told is not None and told.append(trouble)),
        )
        async with inline(log, scope=scope, on_trouble=troubles.hear) as here:
            yield Runtime(log, LocalContext(log.url, here, troubles, scope))

    return opened
