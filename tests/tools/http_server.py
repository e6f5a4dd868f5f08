"""A real HTTP server on this machine, which gives the answers of a test."""

import json
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread


class Handler(BaseHTTPRequestHandler):
    def _answer(self):
        size = int(self.headers.get("Content-Length", 0))
        self.server.asked.append(
            (self.command, self.path, dict(self.headers), self.rfile.read(size))
        )
        status, headers, body = self.server.answers[self.path]
        if body == "the headers":
            body = json.dumps(dict(self.headers)).encode()
        self.send_response(status)
        for name, value in {"Content-Length": str(len(body)), **headers}.items():
            self.send_header(name, value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def __getattr__(self, name):
        if name.startswith("do_"):
            return self._answer
        raise AttributeError(name)

    def log_message(self, *_):
        """Say nothing."""


@contextmanager
def serving(address="127.0.0.1", context=None, **answers):
    """Serve *answers*, a status, headers and body each, by path without its slash.

    With a *context* of TLS, serve https.
    """
    with ThreadingHTTPServer((address, 0), Handler) as server:
        if context is not None:
            server.socket = context.wrap_socket(server.socket, server_side=True)
        server.asked, server.port = [], server.server_port
        server.answers = {f"/{path}": answer for path, answer in answers.items()}
        server.url = f"http://{address}:{server.server_port}"
        Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        try:
            yield server
        finally:
            server.shutdown()
