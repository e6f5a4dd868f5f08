"""The gateway as an ASGI app that others run and mount."""

import asyncio
from contextlib import asynccontextmanager

import httpx2
import pytest
import uvicorn
from starlette.applications import Starlette
from starlette.routing import Mount

from cueline.client.runtime import open_runtime
from cueline.gateway import app
from cueline.testing.wait import await_until
from tests.gateway.conftest import TOKEN
from tests.scripted import HELLO


@asynccontextmanager
async def under_uvicorn(made):
    """Run an ASGI app, and yield an HTTP client of it."""
    server = uvicorn.Server(uvicorn.Config(made, port=0, log_config=None))
    running = asyncio.create_task(server.serve())
    await await_until(lambda: server.started or running.done())
    port = server.servers[0].sockets[0].getsockname()[1]
    headers = {"Authorization": f"Bearer {TOKEN}"}
    async with httpx2.AsyncClient(base_url=f"http://127.0.0.1:{port}", headers=headers) as http:
        yield http
    server.should_exit = True
    await running


@pytest.mark.parametrize("below", ["", "/agents"])
async def test_it_runs_alone_and_below_a_path_of_another_app(log, below):
    async with open_runtime(log, on="inline") as runtime:
        await (await runtime.start(HELLO, "Go", id="one")).result()
    made = app(log, token=TOKEN, on="inline")
    async with under_uvicorn(Starlette(routes=[Mount(below, made)]) if below else made) as http:
        rows = (await http.get(f"{below}/v1/sessions")).json()["rows"]
        page = (await http.get(f"{below}/sessions/one", headers={"Accept": "text/html"})).text
        style = page[page.index(f'href="{below}/static/style.css') + 6 :].partition('"')[0]
        styled = await http.get(style)
        forked = await http.post(f"{below}/v1/sessions/one/fork", json={"at": 2, "id": "two"})
        events = await http.get(f"{below}/v1/sessions/two/events")
        stranger = await http.get(f"{below}/", headers={"Accept": "text/html", "Authorization": ""})
    await made.aclose()

    assert ["one"] == [each["id"] for each in rows]
    assert f'href="{below}/costs"' in page
    assert 200 == styled.status_code
    assert (200, "two") == (forked.status_code, forked.json()["session"])
    assert "event: error" in events.text  # its script has no reply
    assert (303, True) == (stranger.status_code, stranger.headers["location"].startswith(below))


async def test_a_log_that_cannot_be_opened_is_a_problem(tmp_path):
    made = app(tmp_path / "no" / "folder.db" / "x", token=TOKEN, on="inline")
    (tmp_path / "no").write_text("a file")
    async with under_uvicorn(Starlette(routes=[Mount("/x", made)])) as http:
        answer = await http.get("/x/v1/sessions")
        page = await http.get("/x/")

    assert {503, 500} >= {answer.status_code, page.status_code}
    assert "LogUnavailableError" == answer.json()["type"]
