"""What the tests of the providers share."""

import json
import socket
import threading
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from cueline.actors.model_port import ModelRequest
from cueline.events.agent import AgentSpec
from cueline.events.message import UserMessage
from cueline.providers.anthropic.provider import PROVIDER
from cueline.providers.factory import account_for
from tests.providers.aimock_server import running_aimock

KEY = "sk-test-0123456789"


@pytest.fixture(autouse=True)
def no_real_requests(monkeypatch):
    """No test of a provider leaves this machine."""
    look_up = socket.getaddrinfo

    def look_up_here(host, *rest, **options):
        assert host in {"127.0.0.1", "localhost"}, f"a test wants to talk to {host}"
        return look_up(host, *rest, **options)

    monkeypatch.setattr(socket, "getaddrinfo", look_up_here)
    monkeypatch.setenv("NO_PROXY", "*")


@pytest.fixture(scope="session")
def aimock(tmp_path_factory):
    """The address of a server with the vendors' protocols; skipped where there is no node."""
    with running_aimock(tmp_path_factory.mktemp("aimock")) as url:
        yield url


@pytest.fixture
def agent():
    def new(**fields):
        return AgentSpec(**{"name": "tester", "provider": "scripted", "model": "m", **fields})

    return new


@pytest.fixture
def request_for(agent):
    def new(turn=1, attempt=1, messages=(), **fields):
        return ModelRequest(
            session="session-default/1",
            effect=f"{turn}.m",
            turn=turn,
            attempt=attempt,
            agent=agent(**fields),
            messages=[
                m if isinstance(m, bytes) else m.model_dump_json().encode() for m in messages
            ],
        )

    return new


class Vendor(ThreadingHTTPServer):
    """A server that answers as it is told, and remembers what it was asked."""

    daemon_threads = True

    def __init__(self):
        super().__init__(("127.0.0.1", 0), VendorHandler)
        self.paths, self.bodies, self.headers, self.answers = [], [], [], []
        self.was_asked, self.may_answer = threading.Event(), threading.Event()
        self.may_answer.set()
        self.may_close = threading.Event()
        self.may_close.set()

    @property
    def url(self):
        return f"http://127.0.0.1:{self.server_port}"

    def will_say(self, *events):
        stream = "".join(f"event: {e['type']}\ndata: {json.dumps(e)}\n\n" for e in events)
        self.will_stream(stream.encode())

    def will_stream(self, stream, **headers):
        self.answers.append((200, {"content-type": "text/event-stream", **headers}, stream))

    def will_cut(self, stream):
        length = str(len(stream) + 1)
        headers = {"content-type": "text/event-stream", "content-length": length}
        self.answers.append((200, headers, stream))

    def will_fail(self, status, body, **headers):
        self.answers.append((status, {"content-type": "application/json", **headers}, body))


class VendorHandler(BaseHTTPRequestHandler):
    def do_POST(self):
        self.server.paths.append(self.path)
        asked = self.rfile.read(int(self.headers.get("content-length", 0)))
        self.server.bodies.append(json.loads(asked) if asked else None)
        self.server.headers.append(dict(self.headers))
        status, headers, body = self.server.answers.pop(0)
        self.server.was_asked.set()
        self.server.may_answer.wait(timeout=10)
        self.send_response(status)
        for name, value in {"content-length": str(len(body)), **headers}.items():
            self.send_header(name, value)
        with suppress(BrokenPipeError, ConnectionResetError):  # who gave up is not there any more
            self.end_headers()
            self.wfile.write(body)
            self.wfile.flush()
        self.server.may_close.wait(timeout=10)

    do_GET = do_POST  # noqa: N815 - the server looks for this name

    def log_message(self, *_):
        pass


@pytest.fixture
def vendor():
    with Vendor() as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield server
        server.shutdown()
        thread.join()


@pytest.fixture
async def claude_at(agent):
    """Makes Anthropic models that ask *url*, and closes them."""
    models = {}

    def model_at(url):
        account = account_for(agent(provider="anthropic", base_url=url), {"ANTHROPIC_API_KEY": KEY})
        return models.setdefault(url, PROVIDER.make(account, None))

    yield model_at
    for model in models.values():
        await model.close()


@pytest.fixture
def count(claude_at, request_for):
    async def count_at(url, *messages, **fields):
        said = messages or (UserMessage(text="hello"),)
        fields = {"provider": "anthropic", "model": "claude-opus-4-6", **fields}
        return await claude_at(url).count(request_for(messages=said, **fields))

    return count_at


@pytest.fixture
def ask(claude_at, request_for):
    async def ask_at(url, *messages, **fields):
        said = messages or (UserMessage(text="hello"),)
        fields = {"provider": "anthropic", "model": "claude-opus-4-6", **fields}
        return await claude_at(url).reply(request_for(messages=said, **fields))

    return ask_at
