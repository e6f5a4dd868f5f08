"""A server of the HTTP API, in this process, on a log of its own."""

import asyncio
from contextlib import asynccontextmanager
from dataclasses import replace

import httpx2
import pytest

from cueline.client.runtime import open_runtime
from cueline.gateway.server import Address, serve

TOKEN = "cue_a-token-of-this-test"
SAID = []
"""What the servers warned of."""


@asynccontextmanager
async def served(path, **settings):
    """Serve the log at *path*; yield the runtime, and an HTTP client with its token."""
    async with open_runtime(path, on="inline") as runtime:
        runtime.log = replace(runtime.log, **settings)
        url = asyncio.get_running_loop().create_future()
        serving = asyncio.create_task(
            serve(runtime, Address(port=0), token=TOKEN, ready=url.set_result, say=SAID.append)
        )
        done, _ = await asyncio.wait((url, serving), return_when=asyncio.FIRST_COMPLETED)
        if serving in done:
            await serving
        headers = {"Authorization": f"Bearer {TOKEN}"}
        try:
            async with httpx2.AsyncClient(base_url=url.result(), headers=headers) as http:
                yield runtime, http
        finally:
            serving.cancel()
            await asyncio.wait((serving,))


@pytest.fixture(autouse=True)
def keys(tmp_path, monkeypatch):
    """Have a master key of this test's own: proposals are sealed with it."""
    monkeypatch.setenv("CUELINE_KEYS_FOLDER", str(tmp_path / "keys"))


@pytest.fixture
def log(tmp_path):
    return tmp_path / "log.db"
