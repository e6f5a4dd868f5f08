"""A server of models on this machine that needs no key, as Ollama is."""

import json
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread


class Handler(BaseHTTPRequestHandler):
    def do_GET(self):
        self._answer({"models": [{"name": name} for name in self.server.models]})

    def do_POST(self):
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        if self.path == "/api/show":
            return self._answer({"capabilities": ["completion", "tools"]})
        self.server.asked.append(asked)
        done = {"done": True, "done_reason": "stop", "prompt_eval_count": 5, "eval_count": 5}
        message = self.server.replies[len(self.server.asked) - 1]
        return self._answer({"model": asked["model"], "message": message, **done})

    def _answer(self, body):
        data = json.dumps(body).encode() + b"\n"
        self.send_response(200)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *_):
        """Say nothing."""


@contextmanager
def local_server(*models, replies=()):
    """Serve *models*, which give *replies* in order."""
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
