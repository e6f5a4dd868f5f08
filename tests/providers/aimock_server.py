"""The server in `aimock/`, which nobody here wrote, behind a proxy that records and breaks."""

import json
import shutil
import subprocess
import threading
import urllib.error
import urllib.request
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from cueline.providers.tool_protocol import written_call
from cueline.testing.wait import wait_until

FOLDER = Path(__file__).parent / "aimock"
CLI = FOLDER / "node_modules/@copilotkit/aimock/dist/aimock-cli.js"
STARTED = "listening on "
SILENCE = 30
LINE = b'{"model": "x", "mes\n'
EVENT = b'event: message_delta\ndata: {"mes\n\n'


def asked_of(url, method="GET", body=None):
    """Return status, headers and body of an answer, also of an error."""
    request = urllib.request.Request(url, body, {"content-type": "application/json"}, method=method)
    try:
        with urllib.request.urlopen(request, timeout=SILENCE) as answer:
            return answer.status, dict(answer.headers), answer.read()
    except urllib.error.HTTPError as error:
        return error.code, dict(error.headers), error.read()


@contextmanager
def running_aimock(folder):
    """Run the server, and yield its address; skip where it is not there."""
    node = shutil.which("node")
    if node is None or not CLI.exists():
        pytest.skip("aimock: needs node 20, and `npm ci` in tests/providers/aimock")
    config, fixtures, log = folder / "aimock.json", folder / "fixtures.json", folder / "log"
    fixtures.write_text('{"fixtures": []}')
    config.write_text(
        json.dumps({"port": 0, "host": "127.0.0.1", "llm": {"fixtures": str(fixtures)}})
    )
    with log.open("w") as output:
        process = subprocess.Popen([node, CLI, "--config", config], stdout=output, stderr=output)
    try:
        wait_until(lambda: STARTED in log.read_text() or process.poll() is not None, within=30)
        told = log.read_text()
        if process.poll() is not None:
            pytest.skip(f"aimock: it does not start here: {told.strip()[:200]}")
        yield told.split(STARTED)[1].split()[0]
    finally:
        process.terminate()
        process.wait(timeout=10)


class AimockServer(ThreadingHTTPServer):
    """See `cueline.testing.model_server.ModelServer`."""

    daemon_threads = True

    def __init__(self, url, path=""):
        super().__init__(("127.0.0.1", 0), Proxy)
        self.url = url
        self.base_url = f"http://127.0.0.1:{self.server_port}{path}"
        self.requests = []
        self.fault = None
        self.silence = threading.Event()

    def __enter__(self):
        thread = threading.Thread(target=self.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        return super().__enter__()

    def __exit__(self, *_):
        self.silence.set()
        self.shutdown()
        super().__exit__()

    def answer(self, **fixture):
        asked_of(f"{self.url}/__aimock/fixtures", "DELETE")
        fixtures = {"fixtures": [{"match": {}, "chunkSize": 5, **fixture}]}
        asked_of(f"{self.url}/__aimock/fixtures", "POST", json.dumps(fixtures).encode())

    def say(self, text):
        self.answer(response={"content": text})

    def call(self, *calls):
        asked = [{"name": call.name, "arguments": call.arguments} for call in calls]
        self.answer(response={"toolCalls": asked})

    def spoil_call(self):
        pytest.skip("aimock: it sends no malformed arguments")

    def fail(self, status, retry_after=None):
        error = {"message": "It failed.", "type": "error"}
        later = {} if retry_after is None else {"retryAfter": retry_after}
        self.answer(response={"error": error, "status": status, **later})

    def break_stream(self, fault):
        self.say("It rains, as it often does.")
        self.fault = fault


class TextCallServer(AimockServer):
    """Its models call tools in their text."""

    def call(self, *calls):
        self.say("\n".join(map(written_call, calls)))

    def spoil_call(self):
        self.say('<tool_call>{"name": "get_weather", "arguments": {"ci</tool_call>')


class Proxy(BaseHTTPRequestHandler):
    def do_POST(self):
        asked = self.rfile.read(int(self.headers.get("content-length", 0))) or None
        if asked is not None:
            self.server.requests.append(json.loads(asked))
        status, headers, body = asked_of(f"{self.server.url}{self.path}", self.command, asked)
        fault, self.server.fault = self.server.fault, None
        end = b"\n\n" if b"data:" in body else b"\n"
        half = body[: body.index(end, len(body) // 2) + len(end)] if fault else body
        broken = EVENT if b"data:" in body else LINE
        told = half + broken if fault == "garble" else half
        length = len(told) + (fault in {"disconnect", "stall"})
        self.send_response(status)
        sent = {name: headers[name] for name in ("Content-Type", "Retry-After") if name in headers}
        for name, value in {**sent, "content-length": str(length)}.items():
            self.send_header(name, value)
        with suppress(BrokenPipeError, ConnectionResetError):  # who gave up is not there any more
            self.end_headers()
            self.wfile.write(told)
            self.wfile.flush()
        if fault == "stall":
            self.server.silence.wait(SILENCE)

    do_GET = do_POST  # noqa: N815 - the server looks for this name

    def log_message(self, *_):
        pass
