"""A server of models on this machine that needs no key, as Ollama is."""

import json
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread


class Handler(BaseHTTPRequestHandler):
    def do_GET(self):
        self._answer([{"models": [{"name": name} for name in self.server.models]}])

    def do_POST(self):
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        if self.path == "/api/show":
            return self._answer([{"capabilities": ["completion", "tools"]}])
        self.server.asked.append(asked)
        message = self.server.replies[len(self.server.asked) - 1]
        return self._answer(self._pieces(asked["model"], message))

    def _pieces(self, model, message):
        for piece in [message] if isinstance(message, dict) else message:
            yield {"model": model, "message": piece}
        counts = {"prompt_eval_count": 5, "eval_count": 5}
        yield {"model": model, "done": True, "done_reason": "stop", **counts}

    def _answer(self, bodies):
        self.send_response(200)
        self.end_headers()
        for body in bodies:
            self.wfile.write(json.dumps(body).encode() + b"\n")

    def log_message(self, *_):
        """Say nothing."""


@contextmanager
def local_server(*models, replies=()):
    """Serve *models*, which give *replies* in order: each a message, or its pieces as they come."""
    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        server.models, server.asked = models, []
        server.replies = replies or [{"role": "assistant", "content": "Good evening."}]
        Thread(target=server.serve_forever, daemon=True).start()
        try:
            yield server
        finally:
            server.shutdown()


def says(text):
    return {"role": "assistant", "content": text}


def calls(name, **arguments):
    return {**says(""), "tool_calls": [{"function": {"name": name, "arguments": arguments}}]}
