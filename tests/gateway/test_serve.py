"""`cueline serve` as a process: what it prints, refuses and survives."""

import json
import os
import signal
import socket
import subprocess
import sys

import httpx2
import pytest

from cueline.client.runtime import open_runtime
from cueline.client.verify import verify_log
from cueline.errors import ConfigError
from cueline.gateway.server import Address
from cueline.runtime.open_log import open_log
from cueline.testing.wait import await_until
from tests.scripted import HELLO

TOKEN = "a-token-that-the-test-chose"


class Serving:
    """A process that serves a log."""

    def __init__(self, log, *options):
        words = [sys.executable, "-m", "cueline.cli", "serve", "--json", "--log", str(log)]
        self.process = subprocess.Popen(
            [*words, *(options or ("--port", "0"))],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=os.environ | {"CUELINE_TOKEN": TOKEN},
        )

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.communicate()

    def client(self):
        told = json.loads(self.process.stdout.readline())
        assert told["sign_in"].startswith(told["url"].removesuffix("/v1") + "/login?code=cue_")
        headers = {"Authorization": f"Bearer {TOKEN}"}
        return httpx2.Client(base_url=told["url"], headers=headers)

    def positions(self, client, after, most=None):
        """Return the positions of the events after *after*; leave the stream after *most*."""
        found = []
        headers = {"Last-Event-ID": str(after)}
        with client.stream("GET", "/sessions/one/events", headers=headers) as answer:
            for line in answer.iter_lines():
                if line.startswith("id: "):
                    found.append(int(line[4:]))
                if len(found) == most:
                    break
        return found


async def started(log):
    async with open_runtime(log, on="inline") as runtime:
        await (await runtime.start(HELLO, "Go", id="one")).result()


# D24
async def test_a_client_goes_on_by_position_after_the_server_was_killed(log):
    await started(log)
    with Serving(log) as first, first.client() as client:
        whole = first.positions(client, 0)
        before = first.positions(client, 0, most=3)
        os.kill(first.process.pid, signal.SIGKILL)
    with Serving(log) as second, second.client() as client:
        assert whole == before + second.positions(client, before[-1])


# 002-032, 002-033
async def test_a_proposal_outlives_the_server_and_is_committed_once(log):
    async with open_runtime(log, on="inline") as runtime:
        await (await runtime.start(HELLO, "Go", id="one", open=True)).result()
    body = {"action": "send", "arguments": {"session": "one", "text": "And?"}}
    with Serving(log) as first, first.client() as client:
        proposal = client.post("/proposals", json=body).json()
        os.kill(first.process.pid, signal.SIGKILL)
    said = []
    for _ in range(2):
        with Serving(log) as serving, serving.client() as client:
            said.append(client.post(f"/proposals/{proposal['id']}/commit").json())
            os.kill(serving.process.pid, signal.SIGKILL)

    assert [True, False] == [each["recorded"] for each in said]
    assert said[0]["version"] == said[1]["version"]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
async def test_a_signal_ends_it_and_the_exit_code_is_0(log, number):
    with Serving(log) as serving, serving.client() as client:
        assert [] == client.get("/sessions").json()["rows"]
        serving.process.send_signal(number)

        assert ("", 0) == (serving.process.communicate()[1], serving.process.returncode)


async def test_a_served_log_is_sealed_by_itself(log, tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.setenv("CUELINE_SEAL_FOLDER", str(tmp_path / "seals"))
    monkeypatch.setenv("CUELINE_SEAL_EVERY_SECONDS", "60")
    monkeypatch.setenv("CUELINE_SEAL_EVERY_EVENTS", "1")
    await started(log)
    with Serving(log):
        await await_until(lambda: [*(tmp_path / "seals").glob("*.txt")])

    async with open_log(log) as opened:
        checked = await verify_log(opened, tmp_path / "seals")
    assert ((), True) == (checked.bad, checked.seals > 0)


async def test_a_port_in_use_is_refused_by_its_number(log):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with Serving(log, "--port", str(port)) as serving:
            said = serving.process.communicate()[1]

    assert 2 == serving.process.returncode
    assert f"127.0.0.1:{port} cannot be used; choose another port" in said
    assert "Traceback" not in said


# API8:2023 security misconfiguration
@pytest.mark.parametrize(
    ("address", "why"),
    [
        (Address(host="0.0.0.0"), "host: 0.0.0.0 is reached from other machines"),
        (Address(host="example.org"), "give --certificate and --key, or --behind-proxy"),
        (Address(certificate=__file__), "key: TLS needs a certificate and its key"),
    ],
)
def test_an_address_that_would_show_tokens_to_others_is_refused(address, why):
    with pytest.raises(ConfigError, match=why):
        address.check()


@pytest.mark.parametrize("host", ["127.0.0.1", "::1", "localhost"])
def test_this_machine_may_be_served_without_encryption(host):
    Address(host=host).check()
    Address(host="0.0.0.0", behind_proxy=True).check()


def test_open_finds_the_server_and_signs_in(log):
    words = (sys.executable, "-m", "cueline.cli", "open", "--print", "--log", str(log))
    with Serving(log) as serving:
        with serving.client() as client:
            url = str(client.base_url).rstrip("/").removesuffix("/v1")
        told = subprocess.run(words, capture_output=True, text=True, check=True).stdout.strip()
        with httpx2.Client(follow_redirects=True) as browser:
            code = browser.get(told).text
            form = dict(part.split("=") for part in told.partition("?")[2].split("&"))
            page = browser.post(f"{url}/login", data=form)
        serving.process.send_signal(signal.SIGTERM)
        serving.process.wait(20)
    gone = subprocess.run(words, capture_output=True, text=True, check=False)

    assert told.startswith(f"{url}/login?code=cue_")
    assert form["code"] in code
    assert (200, True) == (page.status_code, "<h1>Sessions</h1>" in page.text)
    assert (2, True) == (gone.returncode, "`cueline serve` starts one" in gone.stderr)
