"""Stored keys on Ray: found by the process that calls the model, and in nothing that Ray keeps."""

import asyncio
import json
import os
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import pytest
from pydantic import SecretStr

from cueline.config.environment import HERE
from cueline.events.agent_parts import RetryPolicy
from cueline.events.session import ModelFailed
from cueline.providers.key_store import KeyStore
from cueline.testing.wait import PATIENCE_SECONDS

FIRST, SECOND = "sk-f1rst-c4nary-0123456789", "sk-s3cond-c4nary-0123456789"
NOW = "2026-11-24T12:00:00+00:00"
UNUSED = "[[reply]]\ntext = 'unused'\n"


class Echo(BaseHTTPRequestHandler):
    """A vendor whose errors repeat the key; meanwhile a person replaces it."""

    def do_POST(self):
        self.rfile.read(int(self.headers["Content-Length"]))
        key = self.headers["Authorization"].removeprefix("Bearer ")
        self.server.keys.append(key)
        status, kind = (529, "overloaded_error") if key == FIRST else (400, "invalid_request_error")
        KeyStore(HERE).set("anthropic", "", SecretStr(SECOND), NOW)
        error = {"type": kind, "message": f"no luck with {key}, sent as {dict(self.headers)}"}
        body = json.dumps({"type": "error", "error": error}).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        """Say nothing."""


@pytest.fixture
def vendor():
    KeyStore(HERE).set("anthropic", "", SecretStr(FIRST), NOW)
    with ThreadingHTTPServer(("127.0.0.1", 0), Echo) as server:
        server.keys = []
        Thread(target=server.serve_forever, daemon=True).start()
        yield server
        server.shutdown()
    KeyStore(HERE).remove("anthropic", "")


# 002-013, 002-024, 002-027
async def test_a_stored_key_reaches_the_vendor_and_nothing_that_is_kept(on_cluster, vendor):
    async with on_cluster(UNUSED, sessions=0) as world:
        await world.ask(
            UNUSED,
            1,
            provider="anthropic",
            model="claude-opus-4-6",
            base_url=f"http://127.0.0.1:{vendor.server_port}",
            retry=RetryPolicy(max_retries=1, base_seconds=0.05),
        )
        await world.place.place(world.streams)
        failed = await failures(world, 2)

        assert [FIRST, SECOND] == vendor.keys
        assert all("[redacted]" in each.message for each in failed)
        logs, with_a_key = looked_through(world.folder, Path(os.environ["RAY_TMPDIR"]))
        assert logs
        assert [] == with_a_key


async def failures(world, count):
    failed = []
    async with asyncio.timeout(PATIENCE_SECONDS):
        async for _, fact, _ in world.session.follow():
            failed += [fact] if isinstance(fact, ModelFailed) else []
            if len(failed) == count:
                break
    return failed


def looked_through(*folders):
    """Return Ray's logs, and every file that holds a key."""
    files = [each for folder in folders for each in folder.rglob("*") if each.is_file()]
    held = {each: each.read_bytes() for each in files}
    found = [each for each in files if any(key.encode() in held[each] for key in (FIRST, SECOND))]
    return [each for each in files if each.parent.name == "logs"], found
