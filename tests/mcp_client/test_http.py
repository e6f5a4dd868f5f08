"""MCP servers over HTTP, of the current revision and of an earlier one, that die and come back."""

import asyncio
import os
import socket
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path

import pytest

from cueline.errors import ToolFailedError
from cueline.events.agent_parts import McpServer
from cueline.testing.wait import wait_until

ROOT = Path(__file__).parents[2]
NPM = ROOT / "tests/gateway/conformance/node_modules"
EVERYTHING = NPM / "@modelcontextprotocol/server-everything/dist/index.js"
OURS = [sys.executable, "-m", "tests.mcp_client.http_server"]
THEIRS = [str(NPM / "node/bin/node"), str(EVERYTHING), "streamableHttp"]
needs_npm = pytest.mark.skipif(
    not EVERYTHING.exists(), reason="needs `npm ci` in tests/gateway/conformance"
)


def listens(port):
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


@contextmanager
def served(command, port, *more):
    """Serve at *port*, and kill the server at the end."""
    process = subprocess.Popen(
        [*command, str(port), *more],
        cwd=ROOT,
        env=os.environ | {"PORT": str(port)},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        wait_until(lambda: listens(port))
        yield process
    finally:
        process.kill()
        process.wait()


def at(port):
    return McpServer(url=f"http://127.0.0.1:{port}/mcp")


async def text(executor, order):
    return (await executor.call(order)).content.decode()


SUM = (OURS, "probe__add", {"a": 1, "b": 2}, "3")
ECHO = (THEIRS, "probe__echo", {"message": "hi"}, "Echo: hi")


@pytest.mark.parametrize("case", [SUM, pytest.param(ECHO, marks=needs_npm)], ids=["now", "earlier"])
async def test_a_server_that_comes_back_is_used_again(executor, order, unused_tcp_port, case):
    command, tool, arguments, expected = case
    with served(command, unused_tcp_port):
        asked = order(tool, at(unused_tcp_port), **arguments)
        assert expected == await text(executor, asked)
    with pytest.raises(ToolFailedError) as failed:
        await executor.call(asked)
    assert "not_started" == failed.value.kind
    with served(command, unused_tcp_port):
        assert expected == await text(executor, asked)


@needs_npm
async def test_a_server_of_an_earlier_revision_that_forgot_the_session_did_not_run_the_call(
    executor, order, unused_tcp_port
):
    with served(THEIRS, unused_tcp_port):
        asked = order("probe__echo", at(unused_tcp_port), message="hi")
        await executor.call(asked)
    with served(THEIRS, unused_tcp_port):
        outcomes = []
        for _ in range(2):
            try:
                outcomes.append(await text(executor, asked))
            except ToolFailedError as error:
                outcomes.append(error.kind)
    assert ["not_started", "Echo: hi"] == outcomes


async def test_a_call_that_a_death_cut_off_is_lost(executor, order, unused_tcp_port):
    with served(OURS, unused_tcp_port):
        asked = order("probe__die", at(unused_tcp_port), note="leave")
        with pytest.raises(ToolFailedError) as failed:
            await executor.call(asked)
    assert "lost" == failed.value.kind


class Front:
    """Stands before a server, and refuses each connection after the call of `wait` has come."""

    def __init__(self, port):
        self._port = port
        self.listened, self.called, self.refused = (asyncio.Event() for _ in range(3))
        self.others, self.calls = [], []

    async def serve(self, reader, writer):
        if self.called.is_set():
            writer.write(b"HTTP/1.1 404 No\r\nconnection: close\r\ncontent-length: 0\r\n\r\n")
            while await reader.read(1 << 16):
                pass  # until the client has read the answer
            writer.close()
            self.refused.set()
            return
        self.others.append(writer)
        inner_reader, inner_writer = await asyncio.open_connection("127.0.0.1", self._port)
        asks = []
        back = asyncio.create_task(self._answer(inner_reader, writer, asks))
        while data := await reader.read(1 << 16):
            asks.append(data)
            inner_writer.write(data)
            if b'"name":"wait"' in data:
                self.others.remove(writer)
                self.calls.append(writer)
                self.called.set()
        back.cancel()
        inner_writer.close()

    async def _answer(self, reader, writer, asks):
        while data := await reader.read(1 << 16):
            writer.write(data)
            if b'"subscriptions/listen"' in b"".join(asks):
                self.listened.set()


async def test_a_call_that_was_cut_off_is_lost_though_other_requests_are_refused(
    executor, order, unused_tcp_port, unused_tcp_port_factory
):
    """Its server's changes are listened to again at once, and that request is refused."""
    port, front = unused_tcp_port_factory(), Front(unused_tcp_port)
    async with asyncio.timeout(60):
        with served(OURS, unused_tcp_port):
            async with await asyncio.start_server(front.serve, "127.0.0.1", port):
                add = await asyncio.to_thread(order, "probe__add", at(port), a=1, b=2)
                wait = await asyncio.to_thread(order, "probe__wait", at(port))
                await executor.call(add)
                await front.listened.wait()
                sent = asyncio.create_task(executor.call(wait))
                await front.called.wait()
                for each in front.others:
                    each.transport.abort()
                await front.refused.wait()
                for each in front.calls:
                    each.transport.abort()
                with pytest.raises(ToolFailedError) as failed:
                    await sent
    assert "lost" == failed.value.kind


async def test_a_header_has_its_secret_at_the_runner_only(executor, order, unused_tcp_port):
    server = at(unused_tcp_port).model_copy(update={"headers": {"Authorization": "Bearer $NONE"}})
    with served(OURS, unused_tcp_port):
        asked = order("probe__add", at(unused_tcp_port), a=1, b=2)
        with pytest.raises(ToolFailedError, match="NONE has no value here"):
            await executor.call(order("", server, tool=asked.tool, a=1, b=2))
