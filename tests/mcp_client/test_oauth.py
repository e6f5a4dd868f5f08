"""Logins by OAuth to a real server, by a person at first, and then by runners."""

import asyncio
import json
import os
import subprocess
import sys

import httpx2
import pytest

from cueline.errors import ToolFailedError
from cueline.events.agent_parts import McpOAuth, McpServer
from cueline.providers.key_store import KeyStore
from cueline.providers.mcp_logins import McpLogins
from cueline.tools.mcp.executor import McpExecutor
from cueline.tools.mcp.listing import listed
from tests.mcp_client.test_http import ROOT, served

ADVICE = "run `cueline tools --agent FILE --login probe` on this machine"


@pytest.fixture
def place(tmp_path):
    folder = tmp_path / "server"
    folder.mkdir()
    return folder


@pytest.fixture
def server(place, unused_tcp_port):
    command = [sys.executable, "-m", "tests.mcp_client.oauth_server"]
    with served(command, unused_tcp_port, str(place)):
        yield McpServer(url=f"http://127.0.0.1:{unused_tcp_port}/mcp", oauth=McpOAuth())


@pytest.fixture
def environ(tmp_path):
    return {"CUELINE_KEYS_FOLDER": str(tmp_path / "keys")}


@pytest.fixture
def logins(environ):
    return McpLogins(environ)


def browse(address):
    """Do what a browser does whose user agrees to all, and which asks for an icon, too."""

    async def follow():
        async with httpx2.AsyncClient(follow_redirects=True) as browser:
            target = httpx2.URL(address).params["redirect_uri"]
            await browser.get(httpx2.URL(target).join("/favicon.ico"))
            return await browser.get(address)

    BROWSING.append(asyncio.create_task(follow()))


BROWSING = []


def log_in(server, logins):
    return listed({"probe": server}, logins=logins, show=browse)["probe"]


@pytest.fixture
def tools(server, logins):
    return {tool.name: tool for tool in log_in(server, logins)}


@pytest.fixture
async def executor(logins):
    executor = McpExecutor(logins=logins)
    yield executor
    await executor.close()


@pytest.fixture
def old(server, logins, tools):
    """The tools, of a login whose tokens are too old."""
    login = json.loads(logins.load(server.url))
    logins.save(server.url, json.dumps(login | {"token_expiry_time": 1.0}))
    return tools


def tokens_in(environ):
    return [each.get_secret_value() for each in KeyStore(environ).secrets()][2:]


def noted(place):
    return (place / "log").read_text().split()


async def test_without_a_login_a_call_says_how_to_log_in(executor, order, probe, server):
    with pytest.raises(ToolFailedError, match="nobody has logged in") as failed:
        await executor.call(order("", server, tool=probe("add").tool))
    assert ("not_started", True) == (failed.value.kind, ADVICE in failed.value.message)


async def test_a_stored_login_is_used_by_each_runner(executor, order, server, tools):
    said = await executor.call(order("", server, tool=tools["probe__echo"]))
    assert b"Bearer [redacted]" == said.content


def test_a_login_is_encrypted_and_kept_out_of_the_log(environ, tools, tmp_path):
    access, refresh, client = tokens_in(environ)
    kept = (tmp_path / "keys/keys.json").read_text()
    assert (40, 40) == (len(access), len(refresh))
    assert "mcp:http://127.0.0.1" in kept
    assert [] == [each for each in (access, refresh, client) if each in kept]


async def test_an_error_of_the_server_shows_no_token(executor, order, server, tools):
    with pytest.raises(ToolFailedError, match=r"Bearer \[redacted\]"):
        await executor.call(order("", server, tool=tools["probe__fail"]))


# Refresh tokens are good for one time: a server may end the whole login if one comes twice.
async def test_runners_refresh_an_old_login_one_after_another(order, server, place, old, environ):
    runners = [McpExecutor(logins=McpLogins(environ)) for _ in range(4)]
    try:
        asked = [each.call(order("", server, tool=old["probe__echo"])) for each in runners]
        said = await asyncio.gather(*asked)
    finally:
        await asyncio.gather(*(each.close() for each in runners))
    assert [b"Bearer [redacted]"] * 4 == [each.content for each in said]
    assert ["refreshed"] == noted(place)


async def test_tokens_that_only_the_server_ended_are_refreshed_at_the_next_attempt(
    executor, order, server, place, tools
):
    (place / "revoke").touch()
    asked = order("", server, tool=tools["probe__echo"])
    with pytest.raises(ToolFailedError, match="does not accept its login") as failed:
        await executor.call(asked)
    assert "not_started" == failed.value.kind
    assert b"Bearer [redacted]" == (await executor.call(asked)).content
    assert ["refreshed"] == noted(place)


async def test_a_login_that_cannot_be_refreshed_says_how_to_log_in_again(
    executor, order, server, place, old
):
    (place / "no-refresh").touch()
    with pytest.raises(ToolFailedError, match="not accepted any more") as failed:
        await executor.call(order("", server, tool=old["probe__echo"]))
    assert ("not_started", True) == (failed.value.kind, ADVICE in failed.value.message)


def test_a_refused_login_says_so(server, place, logins):
    (place / "deny").touch()
    assert "the login was refused: access_denied" in str(log_in(server, logins))


def test_a_person_logs_in_at_the_address_that_the_command_prints(server, environ, tmp_path):
    file = tmp_path / "agent.toml"
    file.write_text(
        f'name = "a"\nprovider = "scripted"\nmodel = "m"\n[mcp.vault]\nurl = "{server.url}"\n'
        "oauth = true\n"
    )
    command = [sys.executable, "-m", "cueline", "tools", "--agent", str(file), "--login", "vault"]
    with subprocess.Popen(
        command,
        cwd=tmp_path,
        env=os.environ | environ | {"PYTHONPATH": str(ROOT)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as login:
        address = next(line.strip() for line in login.stderr if "/authorize?" in line)
        page = httpx2.get(address, follow_redirects=True)
        said = login.stdout.read()
    assert "go back to the terminal" in page.text
    assert said.startswith("✓ mcp.vault: 2 tools")
    assert 0 == login.returncode
