"""The servers of a test run: one of each kind, when it is first needed."""

import pytest

from tests.postgres_server import NONE, PostgresServer, installed

LANES = installed()


@pytest.fixture(scope="session")
def servers():
    """Return what starts a PostgreSQL of a kind, or returns the one that runs."""
    running = {}

    def server(kind):
        if kind not in running:
            running[kind] = PostgresServer(LANES[kind])
        return running[kind]

    yield server
    for each in running.values():
        each.close()


@pytest.fixture(params=[*LANES] or [None])
def server(request, servers):
    """Return a running PostgreSQL; a test runs on each kind that is installed."""
    if request.param is None:
        pytest.skip(NONE)
    return servers(request.param)


@pytest.fixture
def one_server(servers):
    """Return a running PostgreSQL, for what does not depend on its version."""
    if not LANES:
        pytest.skip(NONE)
    return servers(next(iter(LANES)))


@pytest.fixture
def postgres_url(server):
    """Return the URL of a log that is there, and empty."""
    return server.empty_log()
