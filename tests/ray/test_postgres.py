"""With the log in PostgreSQL, hosts and runners on Ray write to it directly."""

import pytest
import ray

from cueline.runtime.open_log import open_log
from cueline.stores.backend import backend_of
from cueline.stores.postgres.views import PostgresViews
from tests.postgres_server import NONE, PostgresServer, installed
from tests.ray.conftest import World
from tests.ray.test_deaths import ONE_CALL


@pytest.fixture
def server():
    if not installed():
        pytest.skip(NONE)
    server = PostgresServer(next(iter(installed().values())))
    yield server
    server.close()


@pytest.mark.parametrize("dies", [pytest.param("host", marks=pytest.mark.long), "runner"])
async def test_a_session_survives_a_process_that_wrote_to_the_server_itself(
    server, dies, cluster, tmp_path
):
    url = str(server.empty_log("onray"))
    async with open_log(url) as log:
        world = World(log, tmp_path, cluster)
        await world.ask(ONE_CALL.format(tool="repeatable"), 3, tools=["repeatable"])
        async with world.driven():
            await world.kill_in_a_call(dies)
            results = [await world.result(stream) for stream in world.streams]
            named = ray.util.list_named_actors(all_namespaces=True)
            ours = [
                each["name"] for each in named if each["namespace"] == world.fleet.context.namespace
            ]
            described = backend_of(url).describe()
            views = log.backend.open_views()
            shared = isinstance(views, PostgresViews)
            views.close()

        assert ["Done."] * 3 == results
        assert ours
        assert [] == [name for name in ours if "writer" in name]
        assert shared
        assert "owns the tables" in described
        assert [] == await log.store.faults()
