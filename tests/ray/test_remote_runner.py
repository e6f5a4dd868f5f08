"""A runner outside of the cluster, in a container of its own, which reaches only the server."""

import asyncio
import os
import shutil
import signal
import sys
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from cueline.cli.up import keeper_command
from cueline.client.client import open_client
from cueline.client.tokens import issue_token
from cueline.deciders.heartbeat import HeartbeatTimes
from cueline.testing.wait import await_answer, await_until
from tests.ray.test_up import server_but, up, world

__all__ = ["world"]

FAR = Path(__file__).with_name("far.py")
BLUEPRINT = """
name = "marker"
provider = "scripted"
model = "{folder}/script.toml"
tools = ["{far}:mark"]
"""
SCRIPT = """
[[reply]]
text = "I mark."
calls = [{{ name = "mark", arguments = {{ folder = "{folder}" }} }}]

[[reply]]
text = "Done."
"""
SETTINGS = "[cluster]\nheartbeat_seconds = 0.5\nstale_seconds = 2\nremoval_seconds = {}\n"


class Far:
    """The runner, and what it has done."""

    def __init__(self, world, client, process):
        self.world = world
        self.client = client
        self.process = process

    @property
    def journal(self):
        path = self.world.folder / "journal"
        return path.read_text().splitlines() if path.exists() else []

    async def status(self):
        rows = {each.name: each.status for each in await self.client.runners()}
        return rows.get("far")

    async def until(self, status):
        async def ask():
            return True if await self.status() == status else None

        await await_answer(ask, 30)

    def signal(self, number):
        os.killpg(self.process.pid, number)


@asynccontextmanager
async def far(world, port, removal):
    """Start `up`, its server, and the container; yield the runner once it is registered."""
    folder = world.folder
    (folder / "agents").mkdir()
    (folder / "agents" / "marker.toml").write_text(BLUEPRINT.format(folder=folder, far=FAR))
    (folder / "script.toml").write_text(SCRIPT.format(folder=folder))
    (folder / "settings.toml").write_text(SETTINGS.format(max(30, removal)))
    place = ["--port", str(port), "--log", str(world.log.url)]
    words = ["--config", str(folder / "settings.toml"), "serve", "--json", "--while-stdin", *place]
    times = HeartbeatTimes(interval=0.2, stale=2.0, removal=removal)
    async with up(world, heartbeat=times) as (kept, _), open_client(world.log.url) as client:
        url = await kept.serve(keeper_command(words), str(folder))
        token = (await issue_token(client, "ada", scopes=["admin"])).text
        process = await asyncio.create_subprocess_exec(
            *("bwrap", "--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc"),
            *("--bind", str(folder), str(folder), "--unshare-pid", "--unshare-uts"),
            *("--hostname", "far", "--die-with-parent", "--setenv", "CUELINE_TOKEN", token),
            *("--setenv", "CUELINE_MACHINE", "far", "--", sys.executable, "-m", "cueline.cli"),
            *("runner", "start", "--connect", url, "--name", "far"),
            *("--blueprints", str(folder / "agents")),
            start_new_session=True,
        )
        one = Far(world, client, process)
        try:
            await one.until("online")
            yield one
        finally:
            if process.returncode is None:
                one.signal(signal.SIGKILL)
            await process.wait()


needs_bwrap = pytest.mark.skipif(shutil.which("bwrap") is None, reason="bwrap is missing")


@needs_bwrap
async def test_its_call_outlives_the_server_and_a_time_out_of_reach(world, unused_tcp_port):
    async with far(world, unused_tcp_port, 600) as runner:
        run = await runner.client.submit("marker", "Go")
        await await_until(lambda: runner.journal, 30)
        os.kill(await server_but(world, ()), signal.SIGKILL)
        runner.signal(signal.SIGSTOP)
        await runner.until("stale")
        runner.signal(signal.SIGCONT)
        await runner.until("online")
        (world.folder / "go").touch()
        result = await run.result()

    assert ("completed", "Done.") == (result.status, result.text)
    assert ["far"] == runner.journal


# 001-013, 001-042: it is stale, then removed; then its runs fail.
@needs_bwrap
@pytest.mark.long
async def test_a_run_fails_when_its_runner_is_killed(world, unused_tcp_port):
    async with far(world, unused_tcp_port, 15) as runner:
        run = await runner.client.submit("marker", "Go")
        await await_until(lambda: runner.journal, 30)
        runner.signal(signal.SIGKILL)
        result = await run.result()
        (blueprint,) = await runner.client.blueprints()

    assert ("failed", "Runner disconnected during execution") == (result.status, result.text)
    assert ("offline", ["far"]) == (blueprint.status, runner.journal)
