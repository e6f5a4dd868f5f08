"""The gateway in Ray Serve."""

import httpx2
import pytest

from cueline.client.runtime import open_runtime
from cueline.gateway import app
from tests.scripted import HELLO

TOKEN = "a-token-of-this-test"


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # Ray Serve's own
async def test_it_is_an_app_of_ray_serve(cluster, tmp_path, unused_tcp_port):
    import ray.serve  # noqa: PLC0415 - it warns
    from ray.serve.config import HTTPOptions  # noqa: PLC0415 - likewise

    log = tmp_path / "log.db"
    async with open_runtime(log, on="inline") as runtime:
        await (await runtime.start(HELLO, "Go", id="one")).result()

    @ray.serve.deployment
    @ray.serve.ingress(app(log, token=TOKEN, on="inline"))
    class Gateway:
        """The gateway of one log."""

    ray.serve.start(http_options=HTTPOptions(port=unused_tcp_port))
    try:
        ray.serve.run(Gateway.bind(), route_prefix="/agents")
        async with httpx2.AsyncClient(
            base_url=f"http://127.0.0.1:{unused_tcp_port}/agents",
            headers={"Authorization": f"Bearer {TOKEN}"},
        ) as http:
            rows = (await http.get("/v1/sessions")).json()["rows"]
            page = await http.get("/sessions/one", headers={"Accept": "text/html"})
    finally:
        ray.serve.shutdown()

    assert ["one"] == [each["id"] for each in rows]
    assert 'href="/agents/costs"' in page.text
